/** A pod's row, as `kubectl get pods` shows it: one word for all its containers. */
import type { ContainerState, ContainerStatus, Pod } from '../../../api/pod.ts'
import { ageOf, orNone, type RowCondition, type TableOf, tableColumns } from '../handlers/cells.ts'

export const podTable: TableOf<Pod> = {
  columns: tableColumns(
    'Name',
    'Ready',
    'Status',
    'Restarts',
    'Age',
    'IP*',
    'Node*',
    'Nominated Node*',
    'Readiness Gates*',
  ),
  cells: (pod, nowMs) => {
    const seen = seenThrough(pod)
    return [
      pod.metadata.name ?? '',
      `${seen.ready}/${pod.spec.containers.length + sidecarNames(pod).size}`,
      leaving(pod) ?? seen.word,
      restartsOf(seen.counted, nowMs),
      ageOf(pod.metadata.creationTimestamp, nowMs),
      orNone(pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP),
      orNone(pod.spec.nodeName),
      orNone(pod.status?.nominatedNodeName),
      gatesOf(pod),
    ]
  },
  rowConditions: podRowConditions,
}

function podRowConditions({ status }: Pod): readonly RowCondition[] | undefined {
  const phase = status?.phase
  if (phase !== 'Succeeded' && phase !== 'Failed') return undefined
  const message = phase === 'Succeeded' ? 'The pod has completed successfully.' : 'The pod failed.'
  return [{ type: 'Completed', status: 'True', reason: phase, message }]
}

/** `counted`: the containers whose restarts the row adds up. */
type Seen = { readonly word: string; readonly ready: number; readonly counted: readonly ContainerStatus[] }

function seenThrough(pod: Pod): Seen {
  const status = pod.status ?? {}
  const sidecars = sidecarNames(pod)
  const initializing = initWord(pod, sidecars)
  // As printPod: those behind the first that is not done are not looked at.
  const initStatuses = (status.initContainerStatuses ?? []).slice(0, initializing && initializing.index + 1)
  const readySidecars = initStatuses.filter(({ name, ready }) => ready && sidecars.has(name)).length
  if (initializing !== undefined && !hasCondition(pod, 'Initialized')) {
    return { word: initializing.word, ready: readySidecars, counted: initStatuses }
  }
  const containers = status.containerStatuses ?? []
  const running = containers.filter(({ state, ready }) => ready && stateWord(state) === undefined && state?.running)
  const ofContainer = containers.map(({ state }) => stateWord(state)).find((found) => found !== undefined)
  const word = ofContainer ?? initializing?.word ?? phaseWord(pod)
  const alive = hasCondition(pod, 'Ready') ? 'Running' : 'NotReady'
  return {
    word: word === 'Completed' && running.length > 0 ? alive : word,
    ready: running.length + readySidecars,
    counted: [...containers, ...initStatuses.filter(({ name }) => sidecars.has(name))],
  }
}

function phaseWord({ status = {} }: Pod): string {
  const gated = status.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated')
  return gated ? 'SchedulingGated' : status.reason || (status.phase ?? 'Pending')
}

/** The state of the first init container that is not done, and its place; undefined when all are. */
function initWord({ spec, status = {} }: Pod, sidecars: ReadonlySet<string>) {
  for (const [index, { name, state, started }] of (status.initContainerStatuses ?? []).entries()) {
    if (state?.terminated?.exitCode === 0 || (sidecars.has(name) && started === true)) continue
    const reason = state?.waiting?.reason === 'PodInitializing' ? undefined : stateWord(state)
    return { word: `Init:${reason ?? `${index}/${spec.initContainers?.length ?? 0}`}`, index }
  }
  return undefined
}

/** Why a container is not running; undefined when its state has no reason. */
function stateWord(state: ContainerState | undefined): string | undefined {
  if (state?.waiting?.reason) return state.waiting.reason
  const ended = state?.terminated
  if (ended === undefined) return undefined
  return ended.reason || (ended.signal ? `Signal:${ended.signal}` : `ExitCode:${ended.exitCode}`)
}

function leaving({ metadata, status }: Pod): string | undefined {
  if (metadata.deletionTimestamp === undefined) return undefined
  if (status?.reason === 'NodeLost') return 'Unknown'
  return status?.phase === 'Succeeded' || status?.phase === 'Failed' ? undefined : 'Terminating'
}

function restartsOf(containers: readonly ContainerStatus[], nowMs: number): string {
  const restarts = containers.reduce((sum, { restartCount }) => sum + restartCount, 0)
  const last = containers
    .map(({ lastState }) => lastState?.terminated?.finishedAt ?? '')
    .toSorted()
    .at(-1)
  return restarts === 0 || !last ? `${restarts}` : `${restarts} (${ageOf(last, nowMs)} ago)`
}

function gatesOf(pod: Pod): string {
  const gates = pod.spec.readinessGates ?? []
  if (gates.length === 0) return '<none>'
  return `${gates.filter(({ conditionType }) => hasCondition(pod, conditionType)).length}/${gates.length}`
}

function sidecarNames({ spec }: Pod): ReadonlySet<string> {
  const lasting = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return new Set(lasting.map(({ name }) => name))
}

function hasCondition({ status }: Pod, wanted: string): boolean {
  return status?.conditions?.some(({ type, status }) => type === wanted && status === 'True') ?? false
}
