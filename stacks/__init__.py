"""The CDK app: a database, the jobs that run on it, and what watches them."""

from stacks.node import use_node_of_the_wheel

use_node_of_the_wheel()
