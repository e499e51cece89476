"""Where alarms are told: one topic that pages, one for everything else."""

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


class AlarmTopics(Construct):
    """`pages` hears the one composite alarm; connect the pager here. `notices` hears every single alarm go on and off.

    They are two because a composite that is on already stays on: whoever only hears the page would miss what follows.
    """

    def __init__(self, scope: Construct, id: str, *, email: str | None) -> None:
        super().__init__(scope, id)
        self.pages = self._topic("Pages", "Stopline: somebody must look now", email)
        self.notices = self._topic("Notices", "Stopline: an alarm went on or off", email)

    def _topic(self, id: str, display_name: str, email: str | None) -> sns.Topic:
        topic = sns.Topic(self, id, display_name=display_name, enforce_ssl=True)
        # A topic with a policy of its own loses the default one, by which alarms of its account may publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisAccount",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={
                    "ArnLike": {
                        "aws:SourceArn": f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"
                    },
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                },
            )
        )
        if email is not None:
            topic.add_subscription(subscriptions.EmailSubscription(email))
        CfnOutput(self, f"{id}Arn", value=topic.topic_arn, description=display_name)
        return topic
