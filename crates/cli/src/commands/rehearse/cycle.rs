//! `offhours rehearse --cycle`: hibernates a machine and wakes it while a person looks on.

use domain::{
    activity::Author, decision::judge, invocation::CommandTarget, membership::Subject,
    record::Direction, record::Record, stop_method::StopMethod,
};

use super::Args;
use crate::{
    Exit,
    ask::confirm,
    author::author,
    carry_out::{Command, Until, carry_out},
    connection::Session,
    context::Context,
    exit::UsageError,
    names, output,
};

/// Hibernates the machine and wakes it, following both until the result is seen.
pub(super) async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let record = record(args, &session).await?;
    let in_force = session.store.in_force().await?;
    let verdict = judge(&record, Subject::recorded(&record), in_force.rules(), session.now);
    let policy = verdict.membership.policy(in_force.rules().configuration);
    if StopMethod::of(record.kind(), &policy) != StopMethod::Hibernate {
        return Err(UsageError(format!(
            "{} follows no schedule that hibernates it: give its schedule methods = {{ {} = \
             \"hibernate\" }}, and apply that first",
            args.resource,
            args.resource.kind()
        ))
        .into());
    }
    let question = format!(
        "Shut {} ({}) down now, keep it as a snapshot, delete it, and make it again?",
        record.name, args.resource
    );
    if !confirm(&question, context)? {
        output::remark("Nothing was done.\n");
        return Ok(Exit::Done);
    }
    let author = author(&session, args.reason.clone()).await?;
    let stopped = follow(args, context, &session, &author, Direction::Stop).await?;
    if stopped != Exit::Done {
        output::remark("It was not hibernated; `offhours why` says how it is.\n");
        return Ok(stopped);
    }
    if !self::record(args, &session).await?.is_hibernated() {
        output::remark(
            "It was only powered off, because it is to run again within four hours: rehearse it \
             at another time, or start it with `offhours start`.\n",
        );
        return Ok(Exit::NeedsPerson);
    }
    let session = context.connection.open_for_write().await?;
    let started = follow(args, context, &session, &author, Direction::Start).await?;
    if started == Exit::Done {
        output::remark(
            "Look whether all of it works. Once two inventories have seen it run, ten minutes \
             apart, its schedule may hibernate it: `offhours status -o json` then says \
             \"rehearsed\": true.\n",
        );
    } else {
        output::remark("It goes on being made again: `offhours why` says what is missing.\n");
    }
    Ok(started)
}

async fn record(args: &Args, session: &Session) -> anyhow::Result<Record> {
    let named = [args.resource.to_string()];
    let mut found = names::find(&session.store, &named, session.now).await?;
    let missing = || UsageError(format!("{} is not recorded", args.resource));
    Ok(found.pop().ok_or_else(missing)?)
}

async fn follow(
    args: &Args,
    context: &Context,
    session: &Session,
    author: &Author,
    direction: Direction,
) -> anyhow::Result<Exit> {
    let command = Command {
        direction,
        target: CommandTarget::Resources(vec![args.resource.clone()]),
        author: Some(author.clone()),
        until: Until::Seen,
        rehearsal: true,
    };
    carry_out(session, &command, Some(context)).await
}
