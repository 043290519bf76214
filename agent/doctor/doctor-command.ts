/** `bramble-agent doctor`: what was typed → looking → a report, and what may be put right. */
import { describeHardware } from '../../api/node/hardware-identity.ts'
import { storyOf } from '../../daemon/log.ts'
import { exitCode } from '../../daemon/process/exit-code.ts'
import { readOptions } from '../../daemon/process/options.ts'
import type { DoctorFinding } from './doctor-finding.ts'
import { examine, type Wishes } from './examine.ts'
import { type Done, doctorReport, exitStatusOf } from './report.ts'
import type { DoctorSources } from './sources.ts'
import { reportText } from './text.ts'

export type DoctorRequest = {
  readonly root: string
  readonly dataDir: string | undefined
  readonly dockerSocket: string | undefined
  readonly configPath: string | undefined
}

export type DoctorNeeds = {
  readonly version: string
  readonly sourcesFor: (request: DoctorRequest) => DoctorSources
  /** Undefined: there is nobody to ask. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly terminal: { readonly columns: number; readonly isColoured: boolean }
}

/** `argv`: what follows `doctor`. Gives the exit status. */
export async function doctorCommand(argv: readonly string[], needs: DoctorNeeds): Promise<number> {
  const read = readArguments(argv)
  if (read.want === 'help') {
    needs.stdout(help)
    return exitCode.fine
  }
  if (read.want === 'refuse') {
    needs.stderr(`${read.why}\nTry 'bramble-agent doctor --help'.\n`)
    return exitCode.usage
  }
  const { request, wishes, format, fix, yes } = read
  const sources = needs.sourcesFor(request)
  const first = await examine(sources, wishes)
  const done = fix ? await putRight(first, sources, needs, yes) : []
  const isChanged = done.some(({ error }) => error === undefined)
  const findings = isChanged ? await examine(sources, wishes) : first
  const report = doctorReport(await aboutOf(sources, request.root, needs.version), findings, done)
  needs.stdout(format === 'json' ? `${JSON.stringify(report, null, 2)}\n` : reportText(report, needs.terminal))
  return exitStatusOf(report)
}

async function putRight(
  findings: readonly DoctorFinding[],
  sources: DoctorSources,
  { ask, stderr }: DoctorNeeds,
  yes: boolean,
): Promise<readonly Done[]> {
  const done: Done[] = []
  for (const { check, found, fix } of findings) {
    if (fix === undefined) continue
    const { says: what, needsRestart } = fix
    stderr(`${check}: ${found}\n  ${what}\n`)
    if (!yes && ask === undefined) stderr('  Not done: there is nobody to ask; give --yes\n')
    if (!yes && !(await ask?.('  Shall it be done?'))) continue
    try {
      await sources.apply(fix)
      done.push({ check, what, needsRestart })
    } catch (error) {
      done.push({ check, what, needsRestart, error: storyOf(error) })
    }
  }
  return done
}

async function aboutOf({ machine, nowMs }: DoctorSources, root: string, version: string) {
  const [hostname, hardware, release] = await Promise.all([
    machine.hostname().catch(() => undefined),
    machine.hardware(),
    machine.files.text('/etc/os-release').catch(() => undefined),
  ])
  const system = /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(release ?? '')?.[1]
  const { model } = hardware
  const board = model === undefined ? undefined : describeHardware({ model })
  return {
    time: new Date(nowMs()).toISOString(),
    agentVersion: version,
    hostname: hostname ?? 'A machine',
    machine: [board, system].filter((part) => part !== undefined).join(', '),
    root,
  }
}

type ReadArguments =
  | { readonly want: 'help' }
  | { readonly want: 'refuse'; readonly why: string }
  | {
      readonly want: 'look'
      readonly request: DoctorRequest
      readonly wishes: Wishes
      readonly format: 'text' | 'json'
      readonly fix: boolean
      readonly yes: boolean
    }

const options = {
  'data-dir': { type: 'string' },
  config: { type: 'string' },
  'docker-socket': { type: 'string' },
  'healthz-port': { type: 'string' },
  port: { type: 'string', multiple: true },
  root: { type: 'string' },
  output: { type: 'string', short: 'o' },
  fix: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
  help: { type: 'boolean', short: 'h' },
} as const

function readArguments(argv: readonly string[]): ReadArguments {
  const read = readOptions(argv, { options })
  if (!read.ok) return refuse(read.why)
  const { values } = read.value
  if (values.help) return { want: 'help' }
  const format = values.output ?? 'text'
  if (format !== 'text' && format !== 'json') return refuse(`-o must be text or json, not ${format}`)
  const ports = [...(values.port ?? []), ...(values['healthz-port'] === undefined ? [] : [values['healthz-port']])]
  const strange = ports.find((port) => !/^\d+$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
  if (strange !== undefined) return refuse(`A port is a number from 1 to 65535, not ${strange}`)
  const fix = values.fix ?? false
  const yes = values.yes ?? false
  if (yes && !fix) return refuse('--yes belongs to --fix')
  if (fix && !yes && format === 'json') return refuse('--fix with -o json asks nobody: it needs --yes')
  return {
    want: 'look',
    request: {
      root: values.root ?? '/',
      dataDir: values['data-dir'],
      dockerSocket: values['docker-socket'],
      configPath: values.config,
    },
    wishes: {
      healthzPort: values['healthz-port'] === undefined ? undefined : Number(values['healthz-port']),
      ports: (values.port ?? []).map(Number),
    },
    format,
    fix,
    yes,
  }
}

function refuse(why: string): ReadArguments {
  return { want: 'refuse', why }
}

const help = `Usage: bramble-agent doctor [options]

Looks at this machine as a person would before asking for help: its kernel, disks, power, clock and Docker, what happens to pods
at shutdown, the agent's own files and service, and the way to the controller. Says what was found and what to do about it.
Changes nothing without --fix, needs neither root nor a fleet nor Docker, and takes less than five seconds.

  -o, --output FORMAT   text (the worst first), or json
  --fix                 put right what can be put right safely, each after saying what and asking; never restarts the machine
  -y, --yes             with --fix: do not ask
  --port PORT           look whether this port is free, for a pod of the host's network; may be given several times
  --data-dir DIR        where the agent keeps its identity (/var/lib/bramble/agent)
  --config FILE         the agent's configuration (/etc/bramble/agent.yaml, where it is there)
  --docker-socket PATH  where Docker listens (/var/run/docker.sock)
  --healthz-port PORT   where the agent answers (as configured, else 10248)
  --root DIR            look at the files of another machine, saved below DIR, and at nothing else
  --help                this text

Exit status: 0 all is well; 1 something is wrong; 2 there are warnings, and nothing worse; 64 wrong usage. What could not be
looked at is 'unknown' and changes nothing of that.
`
