/** What a plan for a pod is made of: the facts it is drawn from, and the steps it gives. */
import type { Container } from '../../../api/pod.ts'
import type { ImageFacts } from '../images/image-decision.ts'
import type { PodRecord, WaitingReason } from '../record/pod-record.ts'
import type { RuntimeContainer } from '../runtime/runtime.ts'

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

export type PodPlan = {
  readonly steps: readonly PodStep[]
  /** By container name. */
  readonly waiting: ReadonlyMap<string, WaitingReason>
  /** When time alone changes the plan. */
  readonly againInMs: number | undefined
}

export type PodFacts = {
  /** The pod is from a copy that may be old: what runs of it may be newer, and goes on. */
  readonly mayBeOld?: boolean
  readonly containers: readonly RuntimeContainer[]
  /** By container name, of those images that were looked for. */
  readonly images: ReadonlyMap<string, ImageFacts>
  readonly record: PodRecord
  readonly nowMs: number
  /** How many dead ones of a container stay beside its newest; undefined: one. */
  readonly keptDead?: number
}
