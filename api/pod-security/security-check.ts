/** What a check of the Pod Security Standards is, and the words that several of them use (pod-security-admission/policy). */
import type { ObjectMeta } from '../meta.ts'
import type { Container, PodSpec } from '../pod.ts'
import type { PolicyVersion } from './levels.ts'

/** A pod, or the template of pods. */
export type SecuredPod = { readonly metadata?: ObjectMeta | undefined; readonly spec: PodSpec }

/** A pod as the checks read it. */
export type CheckedPod = {
  readonly annotations: { readonly [key: string]: string }
  readonly spec: PodSpec
  /** Init containers first, then containers, then ephemeral ones. */
  readonly containers: readonly Container[]
}

/** A pod or a container: what has a security context. */
export type Confined = Pick<PodSpec, 'securityContext'> | Pick<Container, 'securityContext'>

/** `reason` is what is forbidden, `detail` which part of the pod does it. */
export type Violation = { readonly reason: string; readonly detail: string }

/** undefined: the pod passes. */
export type CheckFunction = (pod: CheckedPod) => Violation | undefined

export type SecurityCheck = {
  readonly name: string
  /** Pods of `restricted` must pass those of `baseline` too. */
  readonly level: 'baseline' | 'restricted'
  /** In rising order: each holds until the next. Before the first there is no check. */
  readonly versions: readonly {
    readonly since: PolicyVersion
    readonly check: CheckFunction
  }[]
  /** A check of `baseline` that this one covers: of `restricted` it is left out. */
  readonly replaces?: string
}

/** `"a", "b"` */
export function quotedList(texts: readonly string[]): string {
  return texts.map((text) => `"${text}"`).join(', ')
}

/** Each once, sorted. */
export function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort()
}

export function plural(word: string, { length }: readonly unknown[]): string {
  return length === 1 ? word : `${word}s`
}

/** `container "a"`, `containers "a", "b"` */
export function containersText(containers: readonly Container[]): string {
  return `${plural('container', containers)} ${quotedList(containers.map(({ name }) => name))}`
}

/** `pod and containers "a", "b"`: what sets a forbidden value; '' when nothing does. */
export function settersText(isPod: boolean, containers: readonly Container[]): string {
  return [...(isPod ? ['pod'] : []), ...(containers.length > 0 ? [containersText(containers)] : [])].join(' and ')
}

/** The check does not concern pods for Windows (from 1.25). */
export function exceptOnWindows(check: CheckFunction): CheckFunction {
  return (pod) => (pod.spec.os?.name === 'windows' ? undefined : check(pod))
}
