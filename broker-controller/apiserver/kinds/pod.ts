/** core/v1 Pod (pkg/registry/core/pod/strategy.go). */

import { isDeepStrictEqual } from 'node:util'
import type { ServiceAccount } from '../../../api/access/service-account.ts'
import { defaultAccountName } from '../../../api/access/service-account-names.ts'
import { nodeOf } from '../../../api/identity.ts'
import { bridgeRules, internalIPsOf, withOwnAddresses } from '../../../api/node/reported-addresses.ts'
import type { Node } from '../../../api/node.ts'
import { withTolerationRecord, withTolerationRecordOf } from '../../../api/pod/default-tolerations.ts'
import { qosClassOf } from '../../../api/pod/qos-class.ts'
import { mirrorAnnotation, type Pod, type PodCondition } from '../../../api/pod.ts'
import { EvictionSchema } from '../../../api/pod-disruption-budget.ts'
import { resources } from '../../../api/resources.ts'
import { podAddressProblems, withPairedPodIPs } from '../../../api/validation/address-pairs.ts'
import { earlyProblems } from '../../../api/validation/ephemeral-validation.ts'
import { withPodDefaults } from '../../../api/validation/pod-defaults.ts'
import { containerCount, containerExcess, podProblems } from '../../../api/validation/pod-validation.ts'
import { unsupportedFields } from '../../../api/validation/unsupported-fields.ts'
import { podWarnings } from '../../../api/warnings/pod-warnings.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { ensureDefaultAccount } from '../../default-roles/default-account.ts'
import type { Store } from '../../store/store.ts'
import { restrictPod } from '../authorization/node-restriction.ts'
import { generatedName } from '../handlers/generated-name.ts'
import { forbid } from '../handlers/resource-request.ts'
import { type CreateFacts, type KindStrategy, statusSubresource } from '../handlers/strategy.ts'
import { proxyToPod } from '../proxy/proxy-handlers.ts'
import { podLog } from '../streams/pod-log.ts'
import { forwardPorts } from '../streams/port-forward.ts'
import { attachToPod, execInPod } from '../streams/remote-command.ts'
import {
  accountNameOf,
  admitAccount,
  isMirror,
  tokenVolumePrefix,
  unlistedEphemeralSecret,
} from './accounts/pod-account.ts'
import { limitViolation, withLimitDefaults } from './limits/limit-ranger.ts'
import { overheadViolation, withRuntimeClass } from './limits/runtime-admission.ts'
import { withMatchLabelKeys } from './match-label-keys.ts'
import { BindingSchema, bindPod } from './pod-binding.ts'
import { ephemeralChangeProblems, podChangeProblems } from './pod-change.ts'
import { evictPod } from './pod-eviction.ts'
import { podTable } from './pod-table.ts'
import { withPriority } from './priority.ts'

export const podStrategy: KindStrategy<Pod> = {
  ...resources.pods,
  table: podTable,
  // ToSelectableFields.
  selectableFields: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  subresources: {
    status: {
      ...statusSubresource,
      // A write of the status may change annotations: what holds for those of any update holds here.
      prepareForUpdate: (old, now) => {
        const kept = changedPod(old, now)
        return kept.status ? { ...kept, status: withPairedPodIPs(kept.status) } : kept
      },
      validateUpdate: (old, now) => [...podChangeProblems(old, now), ...podAddressProblems(now)],
    },
    log: { access: 'get', kind: 'Pod', get: podLog },
    exec: { access: 'connect', kind: 'PodExecOptions', connect: execInPod },
    attach: { access: 'connect', kind: 'PodAttachOptions', connect: attachToPod },
    proxy: { access: 'proxy', kind: 'PodProxyOptions', proxy: proxyToPod },
    portforward: { access: 'connect', kind: 'PodPortForwardOptions', connect: forwardPorts },
    binding: { access: 'create', kind: 'Binding', body: BindingSchema, create: bindPod },
    // kubectl drain looks for this group, which is not that of pods, before it evicts.
    eviction: {
      access: 'create',
      kind: 'Eviction',
      group: 'policy',
      version: 'v1',
      body: EvictionSchema,
      create: evictPod,
    },
    ephemeralcontainers: {
      access: 'update',
      writes: 'spec',
      change: withEphemeralContainersOf,
      validateUpdate: ephemeralChangeProblems,
    },
  },
  withDefaults: (pod) => ({ ...pod, spec: withPodDefaults(pod.spec) }),
  prepareForCreate: newPod,
  prepareForUpdate: changedPod,
  warningsOnCreate: podWarnings,
  validateCreate: (pod, { restored }) => [
    ...podProblems(pod),
    // A pod that ran before this limit runs on.
    ...(restored
      ? []
      : [...containerExcess('spec.containers', containerCount(pod.spec)), ...earlyProblems('spec', pod.spec)]),
    ...unsupportedFields('spec', pod.spec),
  ],
  validateUpdate: podChangeProblems,
  async admitCreate(created, _, { store, random }) {
    const { runtimeClassName } = created.spec
    const runtimeClass =
      runtimeClassName && (await store.get('runtimeclasses', { namespace: '', name: runtimeClassName }))
    const refuseFor = ({ metadata: { name = '' } }: Pod, because: string) => forbid(resources.pods, name, because)
    const classes = (await store.list('priorityclasses')).items
    const ranges = (await store.list('limitranges', created.metadata.namespace)).items
    const account = isMirror(created) ? undefined : await accountOf(created, store)
    return {
      mutate(pod) {
        const volumeName = generatedName(tokenVolumePrefix, random)
        const owned = admitAccount(withLimitDefaults(pod, ranges), account, volumeName)
        if (!owned.ok) throw refuseFor(pod, owned.because)
        const ranked = withPriority(owned.object, classes)
        if (!ranked.ok) throw refuseFor(pod, ranked.because)
        const admitted = withRuntimeClass(ranked.object, runtimeClass || undefined)
        if (!admitted.ok) throw refuseFor(pod, admitted.because)
        return admitted.object
      },
      decorate(pod) {
        const because = limitViolation(pod, ranges) ?? overheadViolation(pod, runtimeClass || undefined)
        if (because !== undefined) throw refuseFor(pod, because)
        return pod
      },
    }
  },
  podSecurity: { judges: 'pod', parts: (pod) => pod },
  async admitUpdate(pod, { store, addressRules = bridgeRules }, { requester, old, subresource }) {
    if (subresource === 'ephemeralcontainers') await refuseUnlistedSecrets(pod, store)
    const author = nodeOf(requester)
    if (author === undefined || subresource !== 'status' || !hasOtherAddresses(pod, old)) return
    const nodes = addressRules.isRouted ? [] : (await store.list('nodes')).items
    const node = await store.get('nodes', { namespace: '', name: author })
    const isOfAnother = (ip: string) =>
      nodes.some((one) => one.metadata.name !== author && internalIPsOf(one).includes(ip))
    const { wrong } = withOwnAddresses(pod.status ?? {}, pod, node, addressRules, isOfAnother)
    if (wrong.length === 0) return
    throw forbid(resources.pods, pod.metadata.name ?? '', `node "${author}" cannot report ${wrong.join('; ')}`)
  },
  nodeRestriction: {
    async facts(node, _, { store }) {
      const author = await store.get('nodes', { namespace: '', name: node })
      const pods = await store.podsOfNode(node)
      const count = pods.filter(({ metadata }) => metadata.annotations?.[mirrorAnnotation] !== undefined).length
      return { nodeUid: author?.metadata.uid, mirrors: { count, most: mostMirrors(author) } }
    },
    problem: restrictPod,
  },
  returnsDeletedObject: true,
}

/**
 * The account of a new pod; undefined when it does not exist. The default account is created where its controller has not done so
 * yet: Kubernetes waits for that for a second or two.
 */
async function accountOf(pod: Pod, store: Store): Promise<ServiceAccount | undefined> {
  const { namespace = '' } = pod.metadata
  const name = accountNameOf(pod)
  if (name === defaultAccountName) return await ensureDefaultAccount(store, namespace)
  return await store.get('serviceaccounts', { namespace, name })
}

/** Throws Forbidden. */
async function refuseUnlistedSecrets(pod: Pod, store: Store): Promise<void> {
  const because = unlistedEphemeralSecret(pod, await accountOf(pod, store))
  if (because !== undefined) throw forbid(resources.pods, pod.metadata.name ?? '', because)
}

function hasOtherAddresses({ status: now }: Pod, { status: old }: Pod): boolean {
  const addresses = (status: Pod['status']) => [status?.podIP, status?.podIPs, status?.hostIP, status?.hostIPs]
  return !isDeepStrictEqual(addresses(now), addresses(old))
}

/** As many as its pods may be; a node states itself how many that is, so it is bounded. */
function mostMirrors(node: Node | undefined): number {
  const pods = Number(node?.status?.capacity?.['pods'] ?? 0)
  return Math.min(Math.max(pods || 0, 110), 500)
}

const gated: PodCondition = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'SchedulingGated',
  message: 'Scheduling is blocked due to non-empty scheduling gates',
}

/**
 * The pod as it is stored when new: nothing has happened to it yet. One that a node reports after a restore was admitted
 * before, and its tolerations are those of that admission.
 */
function newPod(pod: Pod, { nowMs, restored }: CreateFacts): Pod {
  const spec = withPodDefaults(withMatchLabelKeys(pod))
  const isGated = (spec.schedulingGates ?? []).length > 0
  const conditions = isGated ? [{ ...gated, lastTransitionTime: rfc3339(nowMs) }] : undefined
  const metadata = restored ? pod.metadata : withTolerationRecord(pod.metadata, pod.spec.tolerations ?? [])
  return {
    ...pod,
    metadata,
    spec,
    status: { phase: 'Pending', qosClass: qosClassOf(spec), ...(conditions && { conditions }) },
  }
}

/** What admission set from the pod's class stays when a client replaces the pod without it. */
function changedPod(old: Pod, now: Pod): Pod {
  const priority = now.spec.priority ?? old.spec.priority
  const preemptionPolicy = now.spec.preemptionPolicy ?? old.spec.preemptionPolicy
  const kept = { ...(priority !== undefined && { priority }), ...(preemptionPolicy && { preemptionPolicy }) }
  const metadata = withTolerationRecordOf(old.metadata, now.metadata)
  return { ...now, metadata, spec: { ...now.spec, ...kept } }
}

/** A write to `…/ephemeralcontainers`: these, and nothing else of the pod. */
function withEphemeralContainersOf(stored: Pod, wanted: Pod): Pod {
  const { ephemeralContainers: _, ...spec } = stored.spec
  const { ephemeralContainers } = wanted.spec
  return { ...stored, spec: { ...spec, ...(ephemeralContainers && { ephemeralContainers }) } }
}
