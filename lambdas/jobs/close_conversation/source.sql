-- Conversations that are open and have been silent for half an hour, those silent longest first.
-- The index support.conversations_idle holds them in this order.
select
    'conversation:' || c.id as key,
    jsonb_build_object('conversation_id', c.id) as payload
from support.conversations c
where c.status = 'open'
  and c.last_message_at < now() - interval '30 minutes'
order by c.last_message_at, c.id
