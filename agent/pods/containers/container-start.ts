/** Creates and starts one container of a pod. A problem is put into the pod's record and tried again later. */
import type { ConfigMap } from '../../../api/config-map.ts'
import type { ServiceLink } from '../../../api/network/service-links.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import type { NodeClaim, NodeCsiDriver } from '../../../api/storage/node-claim.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import {
  type ContainerMount,
  type ContainerOptions,
  type ContainerRuntime,
  isUnreachable,
  type KernelLimits,
  RuntimeError,
} from '../../runtime/runtime.ts'
import { endsAsDamaged } from '../images/image-damage.ts'
import type { PodImages } from '../images/pod-images.ts'
import type { ApiServerLocation } from '../options/container-env.ts'
import { containerOptions } from '../options/container-options.ts'
import { asksOfNode } from '../options/downward.ts'
import { withoutValues } from '../options/hidden-values.ts'
import { hasHostsFile, hostsFileText, hostsMount } from '../options/hosts-file.ts'
import { appArmorRefusal, enforceable, unenforcedEvents } from '../options/kernel-limits.ts'
import type { Resolver } from '../options/pod-dns.ts'
import { hasResolvConf, resolvConfMount, resolvConfText } from '../options/resolv-conf.ts'
import { type RuntimeClasses, runtimeHandler } from '../options/runtime-handler.ts'
import { asksForImageUser } from '../options/security.ts'
import type { StepOf } from '../plan/pod-steps.ts'
import type { PodEvent } from '../record/pod-events.ts'
import {
  onCreated,
  onNotCreated,
  onUnenforcedRecorded,
  onWaitingChanged,
  type PodRecord,
  type WaitingReason,
  withoutImages,
} from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { containerMounts, type Mounts } from '../volumes/container-mounts.ts'
import { driverTokens } from '../volumes/driver-tokens.ts'
import type { TokenManager } from '../volumes/token-manager.ts'
import { type DriverTokensOf, tokenNeeds } from '../volumes/token-needs.ts'
import type { VolumeStore } from '../volumes/volume-store.ts'
import { podPath } from '../wanted/desired-pods.ts'
import type { DeviceAllocator } from './devices.ts'
import { type PostStartNeeds, startPostStart } from './post-start.ts'
import { terminationMessageMount } from './termination-message-reader.ts'

/** The current inputs of container options. */
export type OptionSources = {
  /** The node was inspected: a value that is missing does not exist. */
  readonly isNodeKnown: boolean
  readonly hostIP: string | undefined
  /** Address of the other IP family. */
  readonly otherHostIP?: string | undefined
  readonly memoryCapacityBytes: number
  readonly allocatable: { readonly [resource: string]: string | number }
  /** undefined: pods are on the engine's own network. */
  readonly podCIDR?: string | undefined
  /** undefined: the fleet has no network of its own. */
  readonly clusterDomain?: string | undefined
  /** The fleet has one, and this node has no part in it: it has neither of both. */
  readonly isOffNetwork?: boolean | undefined
  readonly apiServer: ApiServerLocation | undefined
  readonly runtimeClasses: RuntimeClasses
  readonly services: readonly ServiceLink[]
  /** undefined: unknown. */
  readonly kernelLimits: KernelLimits | undefined
  readonly podPidsLimit: number
  readonly seccompDefault: boolean
  readonly configMaps: readonly ConfigMap[]
  readonly secrets: readonly Secret[]
  readonly claims: readonly NodeClaim[]
  readonly csiDrivers: readonly NodeCsiDriver[]
}

export type ContainerStartNeeds = PostStartNeeds & {
  readonly records: PodRecords
  readonly runtime: Pick<ContainerRuntime, 'createContainer' | 'startContainer' | 'imageUser' | 'exec'>
  readonly volumes: VolumeStore
  readonly devices: DeviceAllocator
  readonly sources: () => OptionSources
  /** The DNS settings of this machine. */
  readonly hostResolver: () => Promise<Resolver>
  /** The `/etc/hosts` of this machine; undefined: not to be copied. */
  readonly machineHosts: () => Promise<string | undefined>
  readonly tokens: Pick<TokenManager, 'of'>
  readonly images: Pick<PodImages, 'pulledMessage' | 'suspect' | 'damageOf'>
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
}

type Start = {
  readonly uid: string
  readonly pod: Pod
  readonly step: StepOf<'startContainer'>
}

/** A container that could not be created is tried again after this time. */
const problemMs = 10_000
/** The files of a damaged image are checked again in between. */
const damagedMs = 30_000
/** The arrival of a token ends the wait: longer than a request for it may take. */
const tokenMs = 20_000
/** Wait for the first inspection of the node, shortly after the agent's start. */
const nodeKnownMs = 500

export async function startContainer(
  needs: ContainerStartNeeds,
  uid: string,
  pod: Pod,
  step: StepOf<'startContainer'>,
): Promise<void> {
  const { runtime, records, log } = needs
  const { container, attempt } = step
  const { name } = container
  const created = await create(needs, { uid, pod, step })
  if (created === undefined) return
  const { id, env } = created
  const event = (type: PodEvent['type'], reason: string, message: string) =>
    needs.recordEvent(pod, { type, reason, message, containerName: name })
  event('Normal', 'Created', `Created container: ${name}`)
  records.update(uid, (record) => onCreated(record, container, step.previous, needs.clock.monotonicMs()))
  try {
    await runtime.startContainer(id)
    event('Normal', 'Started', `Started container ${name}`)
    startPostStart(needs, pod, container, id)
    log.info('Container started', { pod: podPath(pod), container: name, attempt, id: id.slice(0, 12) })
  } catch (error) {
    if (isUnreachable(error)) throw error
    // It stays `created` with the reason on it: to the next plan it is a container that ended.
    const why = withoutValues(reasonOf(error), env)
    event('Warning', 'Failed', `Error: failed to start container "${name}": ${why}`)
    log.warn('Container not started', { pod: podPath(pod), container: name, why })
  }
}

type Created = { readonly id: string } & Pick<ContainerOptions, 'env'>

/** Returns undefined after a problem. */
async function create(needs: ContainerStartNeeds, start: Start): Promise<Created | undefined> {
  const { uid, pod, step } = start
  const { container, attempt, sandbox } = step
  const { name, image = '' } = container
  if (step.previous !== undefined && endsAsDamaged(step.previous)) needs.images.suspect(uid, image)
  const damage = needs.images.damageOf(uid, image)
  if (damage !== undefined) {
    return void notCreated(needs, start, { reason: 'ImageDamaged', message: damage }, damagedMs)
  }
  const tokens = await needs.tokens.of(pod)
  const current = needs.sources()
  const ofDriver: DriverTokensOf = (one, volume) => driverTokens(one, volume, current)
  if ([...tokenNeeds(pod, ofDriver, container).keys()].some((id) => !tokens.has(id))) {
    return void notCreated(needs, start, { reason: 'ContainerCreating', message: '' }, tokenMs)
  }
  const sources = { ...current, podIP: sandbox.ip, otherPodIP: sandbox.ipv6, tokens }
  if (!sources.isNodeKnown && asksOfNode(pod, container)) {
    return void notCreated(needs, start, { reason: 'ContainerCreating', message: '' }, nodeKnownMs)
  }
  const unguarded = appArmorRefusal(pod, sources.kernelLimits)
  if (unguarded !== undefined) return void problem(needs, start, 'CreateContainerError', unguarded.message)
  const runtime = runtimeHandler(pod, sources.runtimeClasses)
  if (!runtime.ok) return void problem(needs, start, 'CreateContainerError', runtime.message)
  const placed = await containerMounts(pod, container, sources, needs.volumes)
  if (!placed.ok) return void notMounted(needs, start, placed)
  const imageUser = asksForImageUser(pod, container) ? await needs.runtime.imageUser(image) : undefined
  const message = await terminationMessageMount(needs, pod, container, attempt, placed.mounts)
  const etc = await etcMounts(needs, start, [...placed.mounts, ...message])
  // Allocated last: devices are held from here on, and nothing may throw until they are released.
  const holder = { podUID: uid, containerName: name }
  const devices = await needs.devices.allocate(holder, container)
  if (!devices.ok) return void problem(needs, start, 'CreateContainerConfigError', devices.message)
  const options = containerOptions(pod, container, {
    ...sources,
    sandboxID: sandbox.id,
    handler: runtime.handler,
    attempt,
    processesOf: step.processesOf,
    mounts: [...placed.mounts, ...message, ...etc],
    devices: [...devices.devices, ...placed.devices],
    imageUser,
  })
  if (!options.ok) {
    needs.devices.release(holder)
    return void problem(needs, start, 'CreateContainerConfigError', options.message)
  }
  recordCreation(needs, start, options.options, sources.kernelLimits)
  const limits = enforceable(options.options.limits, sources.kernelLimits)
  const { env } = options.options
  const id = await createIn(needs, start, { ...options.options, limits }).finally(() => needs.devices.release(holder))
  return id === undefined ? undefined : { id, env }
}

/** Events: the image is present; limits that the kernel does not enforce, each once for the pod. */
function recordCreation(
  needs: ContainerStartNeeds,
  { uid, pod, step }: Start,
  { limits }: ContainerOptions,
  kernelLimits: KernelLimits | undefined,
): void {
  const { name, image = '' } = step.container
  const record = needs.records.of(uid)
  const message = needs.images.pulledMessage(pod, record, image, step.imagePulled)
  needs.recordEvent(pod, { type: 'Normal', reason: 'Pulled', message, containerName: name })
  for (const unenforced of unenforcedEvents(limits, kernelLimits)) {
    const { reason } = unenforced
    if (needs.records.of(uid).unenforcedRecorded.has(reason)) continue
    needs.recordEvent(pod, { ...unenforced, containerName: name })
    needs.records.update(uid, (before) => onUnenforcedRecorded(before, reason))
  }
}

async function createIn(
  needs: ContainerStartNeeds,
  start: Start,
  options: ContainerOptions,
): Promise<string | undefined> {
  try {
    return await needs.runtime.createContainer(options)
  } catch (error) {
    if (isUnreachable(error)) throw error
    // The image or the sandbox was removed after planning: the next observation shows that.
    if (error instanceof RuntimeError && error.reason === 'ImageNotFound') {
      needs.records.update(start.uid, withoutImages)
    } else {
      needs.images.suspect(start.uid, options.image)
      problem(needs, start, 'CreateContainerError', withoutValues(storyOf(error), options.env))
    }
    return undefined
  }
}

/** Without files of its own the container gets the engine's /etc/hosts and /etc/resolv.conf, with the same names and servers. */
async function etcMounts(
  { volumes, hostResolver, machineHosts, sources, log }: ContainerStartNeeds,
  { uid, pod, step }: Start,
  mounts: readonly ContainerMount[],
): Promise<readonly ContainerMount[]> {
  const made: ContainerMount[] = []
  const { clusterDomain } = sources()
  try {
    const machine = pod.spec.hostNetwork === true ? await machineHosts() : undefined
    const hosts = hasHostsFile(mounts) ? hostsFileText(pod, step.sandbox, machine, clusterDomain) : undefined
    if (hosts !== undefined) made.push(hostsMount(await volumes.etcFile(uid, 'hosts', hosts)))
    const resolver = hasResolvConf(mounts) ? resolvConfText(pod, await hostResolver(), clusterDomain) : undefined
    if (resolver !== undefined) made.push(resolvConfMount(await volumes.etcFile(uid, 'resolv.conf', resolver)))
  } catch (error) {
    log.warn("Container has the engine's files below /etc", {
      pod: podPath(pod),
      container: step.container.name,
      error,
    })
  }
  return made
}

function notMounted(
  needs: ContainerStartNeeds,
  start: Start,
  { volume, event, isQuiet, message }: Mounts & { readonly ok: false },
): void {
  if (volume === undefined || event === undefined) {
    problem(needs, start, 'CreateContainerConfigError', message)
    return
  }
  const { uid, pod, step } = start
  if (!isQuiet && needs.records.get(uid)?.startProblems.get(step.container.name)?.message !== event) {
    needs.recordEvent(pod, { type: 'Warning', reason: failureReason(event), message: event })
  }
  problem(needs, start, 'ContainerCreating', event)
}

/** A block volume is mapped, not mounted (GenerateMapVolumeFunc in pkg/volume/util/operationexecutor). */
function failureReason(event: string): string {
  const isMapped = event.startsWith('MapVolume') && !event.startsWith('MapVolume.NodeAffinity')
  return isMapped ? 'FailedMapVolume' : 'FailedMount'
}

function problem(needs: ContainerStartNeeds, start: Start, reason: string, message: string): void {
  const { name } = start.step.container
  notCreated(needs, start, { reason, message }, problemMs, (record) => onWaitingChanged(record, name))
  needs.log.warn('Container not started', { pod: podPath(start.pod), container: name, reason, why: message })
}

function notCreated(
  { records, clock }: ContainerStartNeeds,
  { uid, step }: Start,
  why: WaitingReason,
  forMs: number,
  then: (record: PodRecord) => PodRecord = (record) => record,
): void {
  const nowMs = clock.monotonicMs()
  records.update(uid, (record) => then(onNotCreated(record, step.container.name, why, forMs, nowMs)))
}

/** Without the container's name: the event has it, and events with the same text are counted together. */
function reasonOf(error: unknown): string {
  return storyOf(error instanceof RuntimeError && error.cause !== undefined ? error.cause : error)
}
