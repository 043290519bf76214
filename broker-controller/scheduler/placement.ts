/** Chooses a node for a pod. */
import type { Pod } from '../../api/pod.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import { keyText } from '../store/informer.ts'
import type { Cluster } from './cluster.ts'
import { countedReasons, type NodeRefusal, type Plugin, type Round, refusal, roundFor, unavailable } from './filter.ts'
import { type PodRelations, podRelations } from './inter-pod-affinity.ts'
import { neighboursAfter, neighboursHere } from './neighbour-trials.ts'
import { namedNodes } from './node-choice.ts'
import type { NodeAllocation } from './node-usage.ts'
import type { KeyedPod } from './nominations.ts'
import { bestNode } from './score.ts'
import { spreadRulesOf } from './topology-spread.ts'
import { volumesOn } from './volumes/volume-binding.ts'
import type { VolumeChoice } from './volumes/volume-cache.ts'

export type Placement = Found | Misfit

type Found = {
  readonly found: true
  readonly nodeName: string
  /** What its claims get there; undefined: all have their volumes already. */
  readonly volumes: VolumeChoice | undefined
}

export type Misfit = {
  readonly found: false
  /** The sentence for the event and the condition. */
  readonly message: string
  /** The plugins that rejected any node. */
  readonly refusedBy: ReadonlySet<Plugin>
  /** By node; nodes that the pod's own terms leave out are not in it. */
  readonly refusals: ReadonlyMap<string, NodeRefusal>
}

/** `start`: the node to begin with; `random`: decides between equals. */
export function* placePod(pod: Pod, nodes: Cluster, start: number, random: () => number): Steps<Placement> {
  const key = keyText(pod.metadata)
  const relations = podRelations(pod, nodes)
  const round = yield* roundFor(pod, nodes, relations)
  const named = namedNodes(pod)
  if (named?.size === 0) return onNoNode(nodes, 'NodeAffinity', 'pod affinity terms conflict')
  if (round.volumes?.refused) return onNoNode(nodes, round.volumes.refused.plugin, round.volumes.refused.reason)
  const promised = nodes.node(nodes.nominationOf(key) ?? '')
  if (promised !== undefined && (yield* refusalWithPromises(key, round, promised, nodes, relations)) === undefined) {
    return foundOn(promised, round)
  }
  const enough = nodesToFind(nodes.nodeCount)
  const fitting: NodeAllocation[] = []
  const refusals = new Map<string, NodeRefusal>()
  for (const usage of named === undefined ? nodes.from(start) : nodesCalled(named, nodes)) {
    const refused = yield* refusalWithPromises(key, round, usage, nodes, relations)
    yield
    if (refused !== undefined) refusals.set(usage.name, refused)
    else if (fitting.push(usage) >= enough) break
  }
  if (fitting.length > 0) return foundOn(yield* bestNode(pod, fitting, nodes, random), round)
  const refusedBy = new Set([...refusals.values()].map(({ plugin }) => plugin))
  if (named !== undefined) refusedBy.add('NodeAffinity')
  return { found: false, message: misfitMessage(refusals, nodes.nodeCount), refusedBy, refusals }
}

/**
 * Does the pod fit beside those who were promised room there and matter as much, and also if they go elsewhere after
 * all? `key` is the pod's own.
 */
export function* refusalWithPromises(
  key: string,
  round: Round,
  usage: NodeAllocation,
  nodes: Cluster,
  relations: PodRelations,
): Steps<NodeRefusal | undefined> {
  const promised = nodes.nominatedTo(usage.name)
  if (promised.length === 0) return refusal(round, usage)
  const rivals = promised.filter((rival) => rival.key !== key && matters(rival, round.pod))
  if (rivals.length > 0) {
    const here = neighboursHere(round.neighbours, usage)
    const refused = yield* nodes.with(rivals, usage.name, function* () {
      const spread = round.spread.length === 0 ? round.spread : yield* spreadRulesOf(round.pod, nodes)
      const pods = rivals.map(({ pod }) => pod)
      return refusal({ ...round, spread, neighbours: neighboursAfter(here, pods, 1, usage, relations) }, usage)
    })
    if (refused !== undefined) return refused
  }
  return refusal(round, usage)
}

function matters(rival: KeyedPod, pod: Pod): boolean {
  return (rival.pod.spec.priority ?? 0) >= (pod.spec.priority ?? 0)
}

/** As Kubernetes: up to a hundred nodes are all filtered; of more, 50 % less 1 % for each 125 nodes, at least 5 % and 100. */
export function nodesToFind(nodeCount: number): number {
  if (nodeCount <= 100) return nodeCount
  const percent = Math.max(5, 50 - Math.floor(nodeCount / 125))
  return Math.max(100, Math.floor((nodeCount * percent) / 100))
}

function nodesCalled(names: ReadonlySet<string>, nodes: Cluster): readonly NodeAllocation[] {
  return [...names].flatMap((name) => nodes.node(name) ?? [])
}

function misfitMessage(refusals: ReadonlyMap<string, NodeRefusal>, nodeCount: number): string {
  if (nodeCount === 0) return noNodesText
  const reasonsOfEach = [...refusals.values()].map(({ reasons }) => reasons)
  return unavailable(nodeCount, countedReasons(reasonsOfEach, [leftOut, nodeCount - reasonsOfEach.length]))
}

const noNodesText = 'no nodes available to schedule pods'
/** For nodes that were not filtered because the pod names others. */
const leftOut = "node(s) didn't satisfy plugin(s) [NodeAffinity]"

function foundOn(usage: NodeAllocation, { volumes }: Round): Found {
  const here = volumes === undefined || volumes.refused ? undefined : volumesOn(volumes, usage)
  const isPending = here !== undefined && !('reasons' in here) && here.bindings.length + here.provisions.length > 0
  return { found: true, nodeName: usage.name, volumes: isPending ? here : undefined }
}

/** The pod itself rules out every node, so none is looked at. */
function onNoNode({ nodeCount }: Cluster, plugin: Plugin, reason: string): Misfit {
  const message = nodeCount === 0 ? noNodesText : unavailable(nodeCount, reason)
  return { found: false, message, refusedBy: new Set([plugin]), refusals: new Map() }
}
