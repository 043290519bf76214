/** `bramble-agent doctor`: arguments → checks → a report, and fixes where they are wanted. */
import { describeHardware } from '../../api/node/hardware-identity.ts'
import { storyOf } from '../../daemon/log.ts'
import { type PrintText, printText, readArguments, refuse } from '../../daemon/process/command-line.ts'
import { doctorRow } from '../commands/command-table.ts'
import type { DoctorFinding } from './doctor-finding.ts'
import { type DoctorOptions, examine } from './examine.ts'
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
  /** How long one check is waited for. */
  readonly lookMs?: number
}

/** `argv`: what follows `doctor`. Gives the exit status. */
export async function doctorCommand(argv: readonly string[], needs: DoctorNeeds): Promise<number> {
  const read = readArgumentsOfDoctor(argv)
  if (read.want !== 'look') return printText(read, needs)
  const { request, options, format, fix, yes } = read
  const sources = needs.sourcesFor(request)
  const first = await examine(sources, options, needs.lookMs)
  const done = fix ? await putRight(first, sources, needs, yes) : []
  const isChanged = done.some(({ error }) => error === undefined)
  const findings = isChanged ? await examine(sources, options, needs.lookMs) : first
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
  | PrintText
  | {
      readonly want: 'look'
      readonly request: DoctorRequest
      readonly options: DoctorOptions
      readonly format: 'text' | 'json'
      readonly fix: boolean
      readonly yes: boolean
    }

function readArgumentsOfDoctor(argv: readonly string[]): ReadArguments {
  const read = readArguments(doctorRow, argv)
  if (read.want !== 'act') return read
  const { fix, yes, output: format, port: ports, root, config, ...values } = read.values
  if (yes && !fix) return refuse(doctorRow, '--yes needs --fix')
  if (fix && !yes && format === 'json') return refuse(doctorRow, '--fix with -o json needs --yes: it does not ask')
  return {
    want: 'look',
    request: { root, dataDir: values['data-dir'], dockerSocket: values['docker-socket'], configPath: config },
    options: { healthzPort: values['healthz-port'], ports },
    format,
    fix,
    yes,
  }
}
