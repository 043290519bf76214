/** The types of a plan: the facts it is made from, and its steps. */
import type { Container } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { ImageFacts } from '../images/image-decision.ts'
import type { PodRecord, WaitingReason } from '../record/pod-record.ts'

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
    /** The earlier instance that this one replaces. */
    readonly previous: RuntimeContainer | undefined
    /** The container whose processes it sees, by id. */
    readonly processesOf?: string
  }
  /** Begins a stop; the container ends later. */
  stop: {
    readonly target: RuntimeContainer
    readonly graceSeconds: number
    readonly why: string
    /** The whole pod is ending: its grace period starts with the first of these steps. */
    readonly leaving?: true
    /** Another instance takes its place. */
    readonly replace?: true
  }
  /** Begins the preStop hook of a container that is stopped later, after others. */
  preStop: { readonly target: RuntimeContainer; readonly graceSeconds: number }
  remove: { readonly target: RuntimeContainer }
}

export type StepName = keyof StepFields
export type StepOf<S extends StepName> = { [Name in S]: { readonly step: Name } & StepFields[Name] }[S]
export type PodStep = StepOf<StepName>

export type PodPlan = {
  readonly steps: readonly PodStep[]
  /** By container name. */
  readonly waiting: ReadonlyMap<string, WaitingReason>
  /** When the plan changes by time alone. */
  readonly againInMs: number | undefined
}

export type PodFacts = {
  /** The pod is from a copy of the checkpoint that may be outdated: containers that it does not list keep running. */
  readonly mayBeOld?: boolean
  readonly containers: readonly RuntimeContainer[]
  /** By container name; only the images that were inspected. */
  readonly images: ReadonlyMap<string, ImageFacts>
  readonly record: PodRecord
  readonly nowMs: number
  /** The number of dead instances of a container that are kept beside the newest; undefined: one. */
  readonly keptDead?: number
}
