/** What a plan for a pod is made of: the facts it is drawn from, and the steps it gives. */
import type { Container } from '../../api/pod.ts'
import type { ImageFacts } from './images.ts'
import type { CrashBackoff } from './restarts.ts'
import type { RuntimeContainer } from './runtime.ts'
import { containerHash } from './spec-hash.ts'

/** The fields of each step, by its name. A new step is a row here and an executor in `pod-worker.ts`. */
type StepFields = {
  lookForImage: { readonly image: string }
  pullImage: { readonly image: string; readonly container: Container }
  runSandbox: { readonly attempt: number; readonly lost: boolean }
  startContainer: {
    readonly container: Container
    readonly attempt: number
    readonly sandbox: RuntimeContainer
    readonly imagePulled: boolean
    /** What this one comes after. */
    readonly previous: RuntimeContainer | undefined
    /** The container whose processes it sees, by id. */
    readonly processesOf?: string
  }
  /** Begins to stop it; the world changes later. */
  stop: {
    readonly target: RuntimeContainer
    readonly graceSeconds: number
    readonly why: string
    /** All of the pod is ending: its time runs from the first of these. */
    readonly leaving?: true
    /** Another takes its place. */
    readonly replace?: true
  }
  remove: { readonly target: RuntimeContainer }
}

export type StepName = keyof StepFields
export type StepOf<S extends StepName> = { [Name in S]: { readonly step: Name } & StepFields[Name] }[S]
export type PodStep = StepOf<StepName>

/** Why a container does not run although it should, in Kubernetes' words. */
export type Waiting = { readonly reason: string; readonly message: string }

export type PodPlan = {
  readonly steps: readonly PodStep[]
  /** By container name. */
  readonly waiting: ReadonlyMap<string, Waiting>
  /** When time alone changes the plan. */
  readonly againInMs: number | undefined
}

/** What is remembered of a pod between two looks. Times are on the monotonic clock. */
export type PodMemory = {
  /** By container name and hash: see `backoffKey`. */
  readonly backoffs: ReadonlyMap<string, CrashBackoff>
  /** By container id: when it ended. */
  readonly exits: ReadonlyMap<string, number>
  /** By container name: it could not be made. */
  readonly troubles: ReadonlyMap<string, Waiting & { readonly retryAtMs: number }>
  /** The sandbox could not be made: not before this time again. */
  readonly sandboxRetryAtMs: number | undefined
  /** Why; '' when it could. */
  readonly sandboxTrouble: string
  /** By container id: its postStart hook has not answered yet. */
  readonly postStarts: ReadonlySet<string>
  /** The pod is ending: until then it has time. */
  readonly leavingUntilMs: number | undefined
  /** By container id: being stopped, at the latest at this time. */
  readonly stopping: ReadonlyMap<string, number>
  /** By container id: it was stopped for another to take its place, whatever the restart policy says. */
  readonly replacing: ReadonlySet<string>
  /** By container id: it could not be removed, not before this time again. */
  readonly stuck: ReadonlyMap<string, number>
  /** By container name: restarts known although the engine has no such container any more. */
  readonly restartCounts: ReadonlyMap<string, number>
}

export const nothingRemembered: PodMemory = {
  backoffs: new Map(),
  exits: new Map(),
  troubles: new Map(),
  sandboxRetryAtMs: undefined,
  sandboxTrouble: '',
  postStarts: new Set(),
  leavingUntilMs: undefined,
  stopping: new Map(),
  replacing: new Set(),
  stuck: new Map(),
  restartCounts: new Map(),
}

/** What probes and hooks say of a container that runs. */
export type Vital = {
  readonly started: boolean
  readonly ready: boolean
  /** It is to be killed, and may then be started again. */
  readonly failed?: { readonly why: string; readonly graceSeconds?: number }
}

/** By container id. One that is not named has no probes and no hooks: it is well as soon as it runs. */
export type Vitals = ReadonlyMap<string, Vital>

export type PodFacts = {
  /** The pod is from a copy that may be old: what runs of it may be newer, and goes on. */
  readonly mayBeOld?: boolean
  readonly containers: readonly RuntimeContainer[]
  /** By container name, of those images that were looked for. */
  readonly images: ReadonlyMap<string, ImageFacts>
  readonly memory: PodMemory
  readonly vitals: Vitals
  readonly nowMs: number
  /** How many dead ones of a container stay beside its newest; undefined: one. */
  readonly keptDead?: number
}

export function backoffKey(container: Container): string {
  return `${container.name}/${containerHash(container)}`
}
