-- What the movable clock of `stopline local` and the tests reads. Only the administrator may write it. Run once, after
-- sql/bootstrap.sql, as the administrator; the migrator refuses a database on Aurora that has this schema.

create schema if not exists stopline_local;
revoke all on schema stopline_local from public;
grant usage on schema stopline_local to stopline_owner;

create table if not exists stopline_local.clock (
  only_row   boolean primary key default true check (only_row),
  shift      interval not null default '0',
  frozen_at  timestamptz
);
insert into stopline_local.clock default values on conflict do nothing;
grant select on stopline_local.clock to stopline_owner;

