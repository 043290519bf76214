/** core/v1 Node (pkg/registry/core/node/strategy.go). */
import { isDeepStrictEqual } from 'node:util'
import { type Identity, nodeOf } from '../../../api/identity.ts'
import { labelKeyProblem, labelValueProblem } from '../../../api/names.ts'
import { bridgeRules, withPossibleAddresses } from '../../../api/node/reported-addresses.ts'
import type { Node } from '../../../api/node.ts'
import { duplicate, forbidden, type Problem, required } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { nodeRangeProblems, withPairedRanges } from '../../../api/validation/address-pairs.ts'
import { problemsWith } from '../../../api/validation/metadata-validation.ts'
import { repeatedPlaces } from '../../../api/validation/repeated.ts'
import { revokeIfNode } from '../../store/revocations.ts'
import {
  nodeAnnotationProblems,
  refuseOtherKey,
  refuseRequestsByStatus,
  refuseTakenKey,
  withoutKey,
} from '../authorization/node-annotations.ts'
import { restrictNode } from '../authorization/node-restriction.ts'
import { forbid } from '../handlers/resource-request.ts'
import { type KindStrategy, type ResourceNeeds, statusSubresource } from '../handlers/strategy.ts'
import { proxyToNode } from '../proxy/proxy-handlers.ts'
import { restoreCheckpoint, withoutCheckpoint } from './node-checkpoint.ts'
import { nodeTable } from './node-table.ts'

export const nodeStrategy: KindStrategy<Node> = {
  ...resources.nodes,
  table: nodeTable,
  selectableFields: ['spec.unschedulable'],
  subresources: {
    status: statusSubresource,
    proxy: { access: 'proxy', kind: 'NodeProxyOptions', proxy: proxyToNode },
    checkpoint: { access: 'create', kind: 'NodeCheckpoint', create: restoreCheckpoint },
  },
  // A node writes most of its Node: fifty images with their names are about 20 KB, annotations at most 256 KiB.
  largestBytes: 512 * 1024,
  emptyStatus: {
    daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
    nodeInfo: {
      machineID: '',
      systemUUID: '',
      bootID: '',
      kernelVersion: '',
      osImage: '',
      containerRuntimeVersion: '',
      kubeletVersion: '',
      kubeProxyVersion: '',
      operatingSystem: '',
      architecture: '',
    },
  },
  withDefaults: (node) => withPairedRanges(withoutFalse(node)),
  prepareForCreate: withNotReadyTaint,
  validateCreate: (node) => [...nodeRangeProblems(node), ...taintProblems(node), ...nodeAnnotationProblems(node)],
  validateUpdate: (old, now) => [
    ...taintProblems(now),
    ...nodeChangeProblems(old, now),
    ...nodeAnnotationProblems(now, old),
  ],
  admitCreate: async (_, identity, needs) => ({
    decorate: (node) => withoutCheckpoint(withoutKey(withoutWrongAddresses(node, identity, needs)), identity, needs),
  }),
  async admitUpdate(node, { store, addressRules }, { requester, old, subresource }) {
    refuseWrongAddresses(node, requester, old, addressRules)
    if (subresource === 'status') refuseRequestsByStatus(node, old)
    refuseOtherKey(node, requester, old)
    await refuseTakenKey(node, old, async () => (await store.list('nodes')).items)
  },
  nodeRestriction: { problem: restrictNode },
  // A node without an object that can still connect would be worse than an object whose node cannot connect.
  beforeRemoval: (name, needs) => revokeIfNode(needs, 'nodes', name),
  deletedTogether: 1, // Each node is written into one list of revocations.
}

/** A node that registers with addresses that it cannot have is registered without them. */
function withoutWrongAddresses(node: Node, identity: Identity, { addressRules = bridgeRules }: ResourceNeeds): Node {
  if (nodeOf(identity) === undefined || node.status === undefined) return node
  const { status, wrong } = withPossibleAddresses(node.status, addressRules)
  return wrong.length === 0 ? node : { ...node, status }
}

function refuseWrongAddresses(node: Node, requester: Identity, old: Node, rules = bridgeRules): void {
  if (nodeOf(requester) === undefined || isDeepStrictEqual(node.status?.addresses, old.status?.addresses)) return
  const { wrong } = withPossibleAddresses(node.status ?? {}, rules)
  if (wrong.length > 0)
    throw forbid(resources.nodes, node.metadata.name ?? '', `the node cannot have ${wrong.join('; ')}`)
}

const notReadyKey = 'node.kubernetes.io/not-ready'

/** Pods are not placed on a new node until the node lifecycle controller has seen it Ready and removes the taint. */
function withNotReadyTaint(node: Node): Node {
  const taints = node.spec?.taints ?? []
  if (taints.some(({ key, effect }) => key === notReadyKey && effect === 'NoSchedule')) return node
  return { ...node, spec: { ...node.spec, taints: [...taints, { key: notReadyKey, effect: 'NoSchedule' }] } }
}

/** Go leaves a false one out (`omitempty`): clients write `unschedulable: false` for a node that is not cordoned. */
function withoutFalse(node: Node): Node {
  if (node.spec?.unschedulable !== false) return node
  const { unschedulable: _, ...spec } = node.spec
  return { ...node, spec }
}

function taintProblems({ spec }: Node): readonly Problem[] {
  const { taints = [] } = spec ?? {}
  const kinds = taints.map(({ key, effect }) => `${key}:${effect}`)
  const repeated = repeatedPlaces(kinds)
  return taints.flatMap(({ key, value = '' }, index) => {
    const field = `spec.taints[${index}]`
    return [
      ...(key === '' ? [required(`${field}.key`)] : problemsWith(`${field}.key`, key, labelKeyProblem)),
      ...problemsWith(`${field}.value`, value, labelValueProblem),
      ...(repeated.has(index) ? [duplicate(field, kinds[index])] : []),
    ]
  })
}

/** Fields that may be set once and then stay (ValidateNodeUpdate). Ranges that stay are not checked again: they cannot be changed. */
function nodeChangeProblems({ spec: old = {} }: Node, node: Node): readonly Problem[] {
  const { spec: now = {} } = node
  const fixed = (what: string) => `node updates may not change ${what} except from "" to valid`
  const hadRanges = (old.podCIDRs ?? []).length > 0
  const forbid = hadRanges && !isDeepStrictEqual(old.podCIDRs, now.podCIDRs)
  return [
    ...(hadRanges ? [] : nodeRangeProblems(node)),
    ...(forbid ? [forbidden('spec.podCIDRs', fixed('podCIDR'))] : []),
    ...(old.providerID && old.providerID !== now.providerID ? [forbidden('spec.providerID', fixed('providerID'))] : []),
  ]
}
