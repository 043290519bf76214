/** The file of `bramble-controller simulate`: a fleet and what happens to it. */
import { type Problem, problemText } from '../../api/problem.ts'
import { type Described, decodedLater, list, object, oneOf, optional, text } from '../../api/schema.ts'
import { ConfigurationError, decodeConfiguration } from '../../daemon/process/configuration-file.ts'
import type { MachineShape } from '../world/machine-shape.ts'
import { MachineSchema, machineProblems, machinesOf } from './file-machines.ts'
import { type StoryEvent, StoryEventSchema, storyOfFile } from './file-story.ts'
import { type Times, timesIn } from './file-times.ts'

export const SimulationFileSchema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('Simulation'),
  machines: optional(list(MachineSchema)),
  backup: optional(text),
  manifests: optional(list(text)),
  objects: optional(list(decodedLater)),
  containers: optional(
    object({ pull: optional(text), start: optional(text), stop: optional(text), work: optional(text) }),
  ),
  story: list(StoryEventSchema),
  duration: optional(text),
})
export type SimulationFile = Described<typeof SimulationFileSchema>

/** What the file asks for, in milliseconds, with the machines of its events by name. */
export type SimulationPlan = {
  readonly machines: readonly MachineShape[]
  readonly containers: { readonly [what in 'pull' | 'start' | 'stop' | 'work']: number }
  readonly story: readonly StoryEvent[]
  readonly durationMs: number
}

/** Throws ConfigurationError with everything that is wrong with its form. */
export function decodeSimulationFile(source: string | Buffer, path: string): SimulationFile {
  const file = decodeConfiguration(source, SimulationFileSchema, path)
  if (file.backup === undefined && (file.machines ?? []).length === 0)
    refuse(path, ['machines: Required value: name at least one machine, or a backup of the controller'])
  return file
}

/** `fromBackup`: the machines that a backup of the controller has. Throws ConfigurationError with everything that is wrong. */
export function simulationPlan(
  file: SimulationFile,
  fromBackup: readonly MachineShape[],
  path: string,
): SimulationPlan {
  const problems: Problem[] = [...machineProblems(file.machines ?? [], fromBackup)]
  const machines = [...fromBackup, ...machinesOf(file.machines ?? [])]
  const times: Times = timesIn(problems)
  const { pull, start, stop, work } = file.containers ?? {}
  const containers = {
    pull: times.span('containers.pull', pull ?? '30s'),
    start: times.span('containers.start', start ?? '5s'),
    stop: times.span('containers.stop', stop ?? '2s'),
    work: times.span('containers.work', work ?? '1m'),
  }
  const story = storyOfFile(file.story, machines, problems)
  const lastMs = Math.max(0, ...story.map(({ fromMs, toMs }) => toMs ?? fromMs))
  const durationMs = times.duration(file.duration, lastMs)
  if (problems.length > 0) refuse(path, problems.map(problemText))
  return { machines, containers, story, durationMs }
}

function refuse(path: string, problems: readonly string[]): never {
  throw new ConfigurationError(`Configuration file ${path} is not valid:`, problems)
}
