// Runs the trigger provider as the CDK installed it (its entry point and handler, unchanged), with the Lambda client
// replaced by answers from the input and the answer to CloudFormation printed instead of sent.
const fs = require("fs");
const Module = require("module");

const { folder, event, answers } = JSON.parse(fs.readFileSync(0, "utf8"));
const calls = [];

class Lambda {
  async invoke(request) {
    calls.push(request);
    const answer = answers.shift();
    if (answer.thrown) throw Object.assign(new Error(answer.thrown.message), { name: answer.thrown.name });
    return { ...answer, Payload: answer.Payload && Buffer.from(answer.Payload) };
  }
}

const load = Module._load;
Module._load = (name, ...rest) => (name === "@aws-sdk/client-lambda" ? { Lambda } : load(name, ...rest));
console.log = () => {};

const entry = require(`${folder}/__entrypoint__.js`);
entry.external.userHandlerIndex = `${folder}/index.js`;
entry.external.sendHttpRequest = async (options, body) => {
  process.stdout.write(JSON.stringify({ calls, reply: JSON.parse(body) }));
};
entry.handler(event, {}).catch((error) => {
  process.stderr.write(String(error && error.stack));
  process.exit(1);
});
