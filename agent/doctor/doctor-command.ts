/** `bramble-agent doctor`: arguments → checks → a report, and fixes where they are wanted. */
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
  /** Undefined: standard input is not a terminal. */
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
    const { summary: what, needsRestart } = fix
    stderr(`${check}: ${found}\n  ${what}\n`)
    if (!yes && ask === undefined) stderr('  Skipped: not a terminal; use --yes\n')
    if (!yes && !(await ask?.('  Apply this fix?'))) continue
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
  if (fix && !yes && format === 'json') return refuse('--fix with -o json cannot ask: use --yes too')
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

Checks this machine: its kernel, disks, power, clock and Docker, what happens to pods at shutdown, the agent's own files and
service, and the connection to the controller. Prints each finding and its remedy. Changes nothing without --fix, needs neither
root nor a fleet nor Docker, and takes less than five seconds.

  -o, --output FORMAT   text (the worst first), or json
  --fix                 apply safe fixes; describe each and ask first; never restarts the machine
  -y, --yes             with --fix: do not ask
  --port PORT           check that this port is free, for a pod in the host's network; may be repeated
  --data-dir DIR        the agent's data directory (/var/lib/bramble/agent)
  --config FILE         the agent's configuration (/etc/bramble/agent.yaml, if it exists)
  --docker-socket PATH  Docker's socket (/var/run/docker.sock)
  --healthz-port PORT   the agent's port for health and metrics (as configured, else 10248)
  --root DIR            check only the files of another machine, saved below DIR
  --help                print this text

Exit status: 0 no findings; 1 problems; 2 warnings only; 64 wrong usage. A check that cannot run is 'unknown' and does not count.
`
