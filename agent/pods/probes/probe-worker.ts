/** The state of one probe of one container: when it is due, and what consecutive answers mean (pkg/kubelet/prober/worker.go). */
import type { Probe } from '../../../api/pod.ts'

export type ProbeKind = 'liveness' | 'readiness' | 'startup'
export const probeKinds: readonly ProbeKind[] = ['startup', 'liveness', 'readiness']

export type ProbeResult = 'success' | 'failure' | 'unknown'

export type ProbeState = {
  readonly kind: ProbeKind
  readonly containerID: string | undefined
  /** The result for the container now. */
  readonly result: ProbeResult
  /** The last answer, and how often it was given in a row. */
  readonly answer: 'success' | 'failure' | undefined
  readonly run: number
  /** The container is not probed any more. */
  readonly onHold: boolean
}

/** The newest instance of the container. */
export type ProbedContainer = {
  readonly id: string
  readonly running: boolean
  readonly runsForMs: number
  /** Its startup probe succeeded, or it has none. */
  readonly started: boolean
  readonly mayRestart: boolean
  readonly podLeaving: boolean
}

export type ProbeRules = {
  readonly initialDelayMs: number
  readonly timeoutMs: number
  readonly periodMs: number
  readonly successThreshold: number
  readonly failureThreshold: number
}

export function rulesOf(probe: Probe): ProbeRules {
  const { initialDelaySeconds = 0, timeoutSeconds, periodSeconds, successThreshold, failureThreshold } = probe
  return {
    initialDelayMs: initialDelaySeconds * 1000,
    timeoutMs: (timeoutSeconds || 1) * 1000,
    periodMs: (periodSeconds || 10) * 1000,
    successThreshold: successThreshold || 1,
    failureThreshold: failureThreshold || 3,
  }
}

export function newProbe(kind: ProbeKind): ProbeState {
  return { kind, containerID: undefined, result: first[kind], answer: undefined, run: 0, onHold: false }
}

const first: { readonly [Kind in ProbeKind]: ProbeResult } = {
  liveness: 'success',
  readiness: 'failure',
  startup: 'unknown',
}

/** A new container starts with the initial result, but a run short of its threshold is carried over to it. */
export function adoptContainer(state: ProbeState, containerID: string): ProbeState {
  if (state.containerID === containerID) return state
  return { ...state, containerID, result: first[state.kind], onHold: false }
}

export type ProbeTurn =
  | { readonly turn: 'ask'; readonly state: ProbeState }
  | { readonly turn: 'wait'; readonly state: ProbeState }
  | { readonly turn: 'end'; readonly state: ProbeState }

export function probeTurn(before: ProbeState, container: ProbedContainer, rules: ProbeRules): ProbeTurn {
  const state = adoptContainer(before, container.id)
  const wait: ProbeTurn = { turn: 'wait', state }
  if (state.onHold) return wait
  if (!container.running) {
    const failed = { ...state, result: 'failure' as const }
    return { turn: container.mayRestart ? 'wait' : 'end', state: failed }
  }
  if (container.podLeaving && state.kind !== 'readiness') return { turn: 'end', state: { ...state, result: 'success' } }
  if (container.runsForMs < rules.initialDelayMs) return wait
  if (container.started === (state.kind === 'startup')) return wait
  return { turn: 'ask', state }
}

/** `containerID`: of the probed container; a result that arrives after it was replaced is ignored. */
export function afterAnswer(
  state: ProbeState,
  containerID: string,
  answer: ProbeResult,
  rules: ProbeRules,
): ProbeState {
  if (answer === 'unknown' || state.containerID !== containerID || state.onHold) return state
  const run = state.answer === answer ? state.run + 1 : 1
  const threshold = answer === 'success' ? rules.successThreshold : rules.failureThreshold
  if (run < threshold) return { ...state, answer, run }
  const isLast = state.kind === 'startup' || (state.kind === 'liveness' && answer === 'failure')
  return { ...state, answer, result: answer, run: isLast ? 0 : run, onHold: isLast }
}
