-- Loads the sample rows. Two functions of the sample application, so that whoever loads the files (the demo, a test,
-- a person with psql) needs one call each:
--
--     select support.load_samples(:'conversations'::jsonb);    -- samples/conversations.json
--     select billing.load_samples(:'invoices'::jsonb);         -- samples/invoices.json
--
-- Ages in the files are relative (idle_minutes, minutes_before_last, issued_days_ago) and are counted back from now().
-- A row that is there already is left alone. Each function returns the number of rows that it added.
-- Run after schema.sql.

create or replace function support.load_samples(conversations jsonb) returns bigint
language plpgsql
as $$
declare
    loaded bigint[];
begin
    with added as (
        insert into support.conversations (id, business, customer, channel, last_message_at)
        select c.id, c.business, c.customer, c.channel, now() - make_interval(mins => c.idle_minutes)
        from jsonb_to_recordset(conversations) as c (
            id bigint, business text, customer text, channel text, idle_minutes integer)
        on conflict (id) do nothing
        returning id
    )
    select coalesce(array_agg(a.id), '{}')
    into loaded
    from added a;

    insert into support.messages (conversation_id, role, body, sent_at)
    select c.id, m.role, m.body, now() - make_interval(mins => c.idle_minutes + m.minutes_before_last)
    from jsonb_to_recordset(conversations) as c (id bigint, idle_minutes integer, messages jsonb)
    cross join lateral jsonb_to_recordset(c.messages) as m (role text, body text, minutes_before_last integer)
    where c.id = any (loaded)
    order by c.id, m.minutes_before_last desc;

    -- Closed ones last: a message opens its conversation.
    update support.conversations o
    set status = 'closed',
        summary = c.summary,
        closed_at = o.last_message_at
    from jsonb_to_recordset(conversations) as c (id bigint, status text, summary text)
    where o.id = c.id
      and c.status = 'closed'
      and o.id = any (loaded);

    return cardinality(loaded);
end
$$;

create or replace function billing.load_samples(invoices jsonb) returns bigint
language sql
as $$
    with added as (
        insert into billing.invoices (id, customer, amount, currency, issued_on, batch_reference)
        select i.id, i.customer, i.amount, i.currency, current_date - i.issued_days_ago, i.batch
        from jsonb_to_recordset(invoices) as i (
            id text, batch text, customer text, amount numeric, currency text, issued_days_ago integer)
        on conflict (id) do nothing
        returning 1
    )
    select count(*) from added
$$;

revoke all on all functions in schema support, billing from public;
