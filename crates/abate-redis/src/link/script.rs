use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};

use super::error::Refusal;

/// A Lua script, named on the wire by its SHA-1.
#[derive(Debug, Clone)]
pub struct Script(Arc<Source>);

#[derive(Debug)]
struct Source {
    lua: &'static str,
    sha1: String,
}

impl Script {
    /// The script `lua`. It writes in its last step, so that an error means that nothing was written.
    #[must_use]
    pub fn new(lua: &'static str) -> Self {
        let sha1 = redis::Script::new(lua).get_hash().to_owned();
        Self(Arc::new(Source { lua, sha1 }))
    }

    fn evalsha(&self, call: &Call) -> Cmd {
        self.command("EVALSHA", &self.0.sha1, call)
    }

    fn eval(&self, call: &Call) -> Cmd {
        self.command("EVAL", self.0.lua, call)
    }

    #[expect(clippy::unused_self, reason = "reads as the two above it")]
    fn command(&self, name: &str, script: &str, call: &Call) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(1).arg(&call.key);
        for argument in &call.arguments {
            command.arg(argument);
        }
        command
    }
}

/// One run of a script: the key it works on, and its arguments.
#[derive(Debug, Clone)]
pub struct Call {
    /// `KEYS[1]`.
    pub key: Vec<u8>,
    /// `ARGV`.
    pub arguments: Vec<Vec<u8>>,
}

/// What a script returned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// `false`, or nothing.
    Nil,
    /// A number: Lua's are cut to whole ones on their way here.
    Integer(i64),
    /// A string, or a status.
    Bytes(Vec<u8>),
    /// A table.
    List(Vec<Reply>),
    /// Something that no script of ours returns.
    Other,
}

impl Reply {
    fn new(value: Value) -> Self {
        match value {
            Value::Nil => Self::Nil,
            Value::Int(number) => Self::Integer(number),
            Value::BulkString(bytes) => Self::Bytes(bytes),
            Value::SimpleString(text) => Self::Bytes(text.into_bytes()),
            Value::Okay => Self::Bytes(b"OK".to_vec()),
            Value::Array(values) => Self::List(values.into_iter().map(Self::new).collect()),
            _ => Self::Other,
        }
    }
}

/// What the server said to one call.
pub(super) type Answer = Result<Reply, Refusal>;

pub(super) fn answers(values: Vec<Value>) -> Vec<Answer> {
    let answer = |value| match value {
        Value::ServerError(error) => Err(Refusal::new(&error)),
        value => Ok(Reply::new(value)),
    };
    values.into_iter().map(answer).collect()
}

/// All of `calls`, for a server that has the script.
pub(super) fn by_name(script: &Script, calls: &[Call]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(calls.len());
    for call in calls {
        pipeline.add_command(script.evalsha(call));
    }
    pipeline
}

/// The calls at `places`: the first brings the script along, the others find it there.
pub(super) fn in_full(script: &Script, calls: &[Call], places: &[usize]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(places.len());
    for (n, call) in places.iter().filter_map(|place| calls.get(*place)).enumerate() {
        pipeline.add_command(if n == 0 { script.eval(call) } else { script.evalsha(call) });
    }
    pipeline
}
