/** Every command of bramble-agent with its options: read, checked, explained and completed from these rows. */
import type { Command } from '../../daemon/process/command.ts'

export const agentDefaults = {
  dataDir: '/var/lib/bramble/agent',
  dockerSocket: '/var/run/docker.sock',
  root: '/',
} as const

const dataDir = {
  value: 'DIR',
  help: 'data directory: identity and checkpoint',
  defaultText: agentDefaults.dataDir,
} as const
const root = {
  value: 'DIR',
  help: 'where to read /proc, /sys and /etc of the machine',
  defaultText: agentDefaults.root,
} as const
const logFormat = {
  value: 'FORMAT',
  help: 'log format',
  choices: ['json', 'text', 'journal'],
  defaultText: 'text on a terminal, else json',
} as const
const logLevel = {
  value: 'LEVEL',
  help: 'lowest level to log',
  choices: ['error', 'warn', 'info', 'debug'],
  defaultText: 'info',
} as const

export const runOptions = {
  'data-dir': dataDir,
  config: { value: 'FILE', help: "AgentConfiguration in YAML, with the kubelet's field names" },
  'node-name': { value: 'NAME', help: 'refuse to run as another node' },
  'docker-socket': { value: 'PATH', help: 'socket of Docker', defaultText: agentDefaults.dockerSocket },
  'healthz-port': {
    value: 'PORT',
    help: 'port of the local endpoint on 127.0.0.1; 0 picks a free port',
    range: [0, 65_535],
    defaultText: '10248',
  },
  root,
  'log-format': logFormat,
  'log-level': logLevel,
  check: { help: 'check the configuration and the identity, and exit' },
  version: { help: 'print the version' },
} as const satisfies Command['options']

const runRow = {
  name: 'bramble-agent run',
  about: 'run the agent (default)',
  forms: { '': '' },
  options: runOptions,
} as const satisfies Command

export const firstBootRow = {
  name: 'bramble-agent first-boot',
  about: 'join with the bramble.yaml of the boot partition, retrying until it works',
  forms: { '': '' },
  options: { 'data-dir': dataDir, root, 'log-format': logFormat, 'log-level': logLevel },
} as const satisfies Command

export const joinRow = {
  name: 'bramble-agent join',
  about: 'join a fleet, then run as its node',
  text: `Join a fleet, then run as its node. 'bramble-controller token create --print-join-command' prints the command to use.
With the Debian package systemd runs the agent: the command ends once the machine has joined, unless options of 'run' are given.
Joining again gives the machine a new certificate. A name that another machine has is given only after an operator approved it.
The options of 'run' are passed on.`,
  usage: ['https://HOST:PORT --token ID.SECRET --ca-hash sha256:HEX [options]'],
  forms: { 'https://HOST:PORT': '' },
  options: {
    token: { value: 'ID.SECRET', help: 'token that lets this machine request a certificate' },
    'ca-hash': { value: 'HASH', help: 'sha256:HEX of the authority; nothing is sent to a controller that has another' },
    'no-run': { help: "only join; start the agent later with 'bramble-agent run'" },
    ...runOptions,
    'node-name': { value: 'NAME', help: 'name of the node', defaultText: 'the hostname in lower case' },
  },
} as const satisfies Command

export const doctorRow = {
  name: 'bramble-agent doctor',
  about: 'examine this machine and suggest fixes',
  text: `Examine this machine: kernel, disks, power, clock and Docker, pods at shutdown, files and service of the agent, and the
connection to the controller. Print what was found and how to fix it. Changes nothing without --fix; needs neither root, a fleet nor
Docker; takes less than five seconds.`,
  forms: { '': '' },
  options: {
    output: { value: 'FORMAT', short: 'o', help: 'output format', choices: ['text', 'json'], default: 'text' },
    fix: { help: 'apply each safe fix after a question; never restarts the machine' },
    yes: { short: 'y', help: 'with --fix: apply without asking' },
    port: {
      value: 'PORT',
      help: 'check that this port is free, for a pod of the host network',
      range: [1, 65_535],
      repeated: true,
    },
    'data-dir': { value: 'DIR', help: 'data directory of the agent', defaultText: agentDefaults.dataDir },
    config: { value: 'FILE', help: 'configuration of the agent', defaultText: '/etc/bramble/agent.yaml if it exists' },
    'docker-socket': { value: 'PATH', help: 'socket of Docker', defaultText: agentDefaults.dockerSocket },
    'healthz-port': {
      value: 'PORT',
      help: 'port of the local endpoint',
      range: [1, 65_535],
      defaultText: 'as configured, else 10248',
    },
    root: { value: 'DIR', help: 'examine only the files of another machine, saved below DIR', default: '/' },
  },
  end: `Exit status: 0 no problem; 1 a problem; 2 only warnings; 64 wrong usage. A check that could not be made is 'unknown' and
does not change it.`,
} as const satisfies Command

export const networkRow = {
  name: 'bramble-agent network',
  about: 'show how this node reaches the pods of the others',
  text: `Show the routes to the pods of other nodes, and what is missing of them: from what the running agent has received, or
its checkpoint, and from the kernel. With NAME, show where a packet of this node to it goes. Needs root.`,
  forms: { '[NAME]': 'NAMESPACE/SERVICE, a DNS name, the name of a node, or an address' },
  options: {
    output: { value: 'FORMAT', short: 'o', help: 'output format', choices: ['text', 'json'], default: 'text' },
    remove: { help: 'remove routes, rules and tunnel from the kernel: for a machine that is no longer a node' },
    'data-dir': dataDir,
    root,
  },
  end: 'Exit status: 0 all is in place; 1 something is missing; 64 wrong usage.',
} as const satisfies Command

export const reportRow = {
  name: 'bramble-agent report',
  about: 'print what this machine is made of, for docs/boards.md',
  text: `Print board, boot loader, power supply, disks and network interfaces of this machine as a row of docs/boards.md. It has no serial
number, address or name. Needs neither root nor a fleet.`,
  forms: { '': '' },
  options: {
    output: { value: 'FORMAT', short: 'o', help: 'output format', choices: ['text', 'json'], default: 'text' },
    root,
  },
} as const satisfies Command

export const completionRow = {
  name: 'bramble-agent completion',
  about: 'print the completion script of a shell',
  forms: { bash: 'for bash: source it, or install it in /usr/share/bash-completion/completions' },
  options: {},
} as const satisfies Command

export const agentProgram = {
  name: 'bramble-agent',
  about: 'agent of a node',
  text: 'Make this machine a node: report its state, and run in Docker the pods that are bound to it.',
  usage: ['[run] [options]', 'COMMAND [options]'],
  forms: { '': '' },
  options: runOptions,
  commands: {
    run: runRow,
    join: joinRow,
    'first-boot': firstBootRow,
    doctor: doctorRow,
    network: networkRow,
    report: reportRow,
    completion: completionRow,
  },
  end: "'bramble-agent COMMAND --help' describes a command.",
} as const satisfies Command
