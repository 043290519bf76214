/** The programs of containers in place of their command lines, for pods of real manifests: how long they need for what. */
import type { ContainerIdentity, ContainerRuntime } from '../../agent/runtime/runtime.ts'
import type { FakeRuntime } from '../../agent/testing/fake-runtime.ts'
import type { SimulatedTime } from './simulated-time.ts'

export type SimulatedPrograms = {
  /** The pull of an image that the machine does not have. Every image can be pulled. */
  readonly pullMs: number
  /** From the start of a container until its program serves. */
  readonly startMs: number
  /** From SIGTERM until the program ends, if its grace period is not shorter. */
  readonly stopMs: number
  /** After how many seconds the program has completed; undefined: it serves until it is stopped. */
  readonly workSeconds: (identity: ContainerIdentity) => number | undefined
}

type ProgramNeeds = { readonly time: SimulatedTime; readonly programs: SimulatedPrograms }

/** The engine for one agent. Command lines are those that `fake-runtime.ts` and `simulated-engine.ts` read. */
export function withPrograms(
  engine: FakeRuntime,
  runtime: ContainerRuntime,
  { time, programs }: ProgramNeeds,
): ContainerRuntime {
  const { pullMs, startMs, stopMs, workSeconds } = programs
  return {
    ...runtime,
    async pullImage(image, options) {
      await time.passed(pullMs)
      engine.registry.add(image)
      return runtime.pullImage(image, options)
    },
    createContainer(options) {
      const seconds = workSeconds(options.identity)
      const work = seconds === undefined ? ['serve'] : ['work', String(seconds), '0']
      return runtime.createContainer({ ...options, command: [...work, 'trap "exit 143" TERM'], args: [] })
    },
    async startContainer(id) {
      await time.passed(startMs)
      return runtime.startContainer(id)
    },
    async stopContainer(id, gracePeriodSeconds) {
      await time.passed(Math.min(stopMs, gracePeriodSeconds * 1000))
      return runtime.stopContainer(id, gracePeriodSeconds)
    },
  }
}
