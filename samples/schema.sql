-- The sample application that the shipped kinds serve: a support desk (schema support) and its books (schema billing).
-- Both belong to the application. Stopline reads and writes them only through the grants at the end of this file.
--
-- Run as a superuser on a database that Stopline has bootstrapped (the grants name its role stopline_source);
-- running it again changes nothing. PostgreSQL 15 to 18.
--
-- support.conversations has one partial index: the source of close_conversation asks each minute for the open
-- conversations that have been silent longest, and closed ones, nearly all of the table, must cost it nothing.

create schema if not exists support;
create schema if not exists billing;

create table if not exists support.conversations (
    id bigint primary key,
    business text not null,
    customer text not null,
    channel text not null,
    status text not null default 'open' check (status in ('open', 'closed')),
    last_message_at timestamptz not null,
    summary text check (length(summary) between 1 and 20000),
    closed_at timestamptz,
    constraint closed_has_summary_and_time
        check (status = 'open' or (summary is not null and closed_at is not null))
);

create index if not exists conversations_idle
    on support.conversations (last_message_at, id)
    where status = 'open';

create table if not exists support.messages (
    id bigint generated always as identity primary key,
    conversation_id bigint not null references support.conversations on delete cascade,
    role text not null check (role in ('customer', 'agent')),
    body text not null,
    sent_at timestamptz not null
);

create index if not exists messages_of_conversation
    on support.messages (conversation_id, sent_at, id);

-- A message that arrives keeps its conversation alive: it moves last_message_at and opens a closed conversation again.
-- close_conversation compares last_message_at before it closes, so it never closes over a message it has not read.
create or replace function support.note_message() returns trigger
language plpgsql
as $$
begin
    update support.conversations
    set last_message_at = greatest(last_message_at, new.sent_at),
        status = 'open',
        closed_at = null
    where id = new.conversation_id;
    return null;
end
$$;

create or replace trigger note_message
    after insert on support.messages
    for each row execute function support.note_message();

create table if not exists billing.invoices (
    id text primary key,
    customer text not null,
    amount numeric(12, 2) not null,
    currency text not null check (currency ~ '^[A-Z]{3}$'),
    issued_on date not null,
    batch_reference text,
    exported_at timestamptz,
    constraint exported_in_a_batch check (exported_at is null or batch_reference is not null)
);

create index if not exists invoices_of_batch
    on billing.invoices (batch_reference);

-- Hands a batch over for export: marks its invoices and returns the payload of an accounting_export job, amounts as
-- strings. Call it in the transaction that enqueues the job, so that an invoice is marked exactly when a job carries
-- it. Null when the batch has nothing left to export.
create or replace function billing.take_batch(batch text) returns jsonb
language sql
as $$
    with taken as (
        update billing.invoices i
        set exported_at = now()
        where i.batch_reference = batch
          and i.exported_at is null
        returning i.*
    )
    select case when count(*) > 0 then jsonb_build_object(
        'batch', batch,
        'invoice_ids', jsonb_agg(t.id order by t.id),
        'invoices', jsonb_agg(jsonb_build_object(
            'id', t.id,
            'customer', t.customer,
            'amount', t.amount::text,
            'currency', t.currency,
            'issued_on', t.issued_on::text) order by t.id)) end
    from taken t
$$;

-- Roles. close_conversation runs as a role that sees the conversations and sets just the columns that closing sets.
-- accounting_export needs no role: its payload is the batch, frozen when it was enqueued, so that every attempt sends
-- the same content. billing_app is the application itself, which enqueues: in one transaction it takes a batch and
-- makes the job that carries it. They have no password: locally the socket admits them, on Aurora they get rds_iam.
do $$
declare
    app text;
begin
    foreach app in array array['close_conversation_app', 'billing_app'] loop
        begin
            execute format('create role %I login', app);
        exception when duplicate_object or unique_violation then
            null; -- roles belong to the cluster: a run on another database made it first
        end;
        execute format('grant connect on database %I to %I', current_database(), app);
        if exists (select from pg_catalog.pg_roles where rolname = 'rds_iam') then
            execute format('grant rds_iam to %I', app);
        end if;
    end loop;
end
$$;

revoke all on all functions in schema support, billing from public;

grant usage on schema support to close_conversation_app, stopline_source;
grant select on support.messages to close_conversation_app;
grant select on support.conversations to close_conversation_app;
grant update (status, summary, closed_at) on support.conversations to close_conversation_app;
grant select (id, status, last_message_at) on support.conversations to stopline_source;

grant stopline_producer to billing_app;
grant usage on schema billing to billing_app;
grant select, update (exported_at) on billing.invoices to billing_app;
grant execute on function billing.take_batch(text) to billing_app;
