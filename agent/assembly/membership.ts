/** This machine as a member of its fleet: its certificate, its Node object, its mirror pods, and checkpoints for the controller. */
import { probePort, probePortAnnotation } from '../../api/network/address-probe.ts'
import { type AgentUpdateReport, agentUpdateAnnotation } from '../../api/node/agent-update.ts'
import { inventoryAnnotation } from '../../api/node/machine-inventory.ts'
import { type OsReport, osUpdatesAnnotation } from '../../api/node/os-updates.ts'
import { referencesAnnotation } from '../../api/node/references-annotation.ts'
import { mapsBlocksAnnotation, mountsClaimsAnnotation } from '../../api/storage/node-claim.ts'
import type { Pool } from '../../api/storage/pools.ts'
import { certificatesIn } from '../../api/text/pem.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { type Cell, cell, firstValue } from '../../daemon/cell.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { VolumePools } from '../adapters/disk/volumes/pools.ts'
import { readMachineInventory } from '../adapters/inventory/machine-inventory.ts'
import { readHardwareIdentity } from '../adapters/kernel/host-identity.ts'
import { describeMachine } from '../adapters/kernel/host-inventory.ts'
import type { MqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { authoritiesOf } from '../join/authorities.ts'
import { type AgentIdentity, renewIdentity } from '../join/identity.ts'
import { certificateManager, type NodeCredentials } from '../node/certificate/certificate-manager.ts'
import type { ControlPlaneListener } from '../node/connection/control-plane.ts'
import {
  type KeptServers,
  keptServers,
  type PublishedServers,
  publishedServers,
  serverChoice,
} from '../node/connection/controller-servers.ts'
import { checkpointReporter } from '../node/registration/checkpoint-report.ts'
import { desiredContents } from '../node/registration/desired-contents.ts'
import { registeredPools } from '../node/registration/registered-pools.ts'
import { registration } from '../node/registration/registration.ts'
import type { NodeStatusManager } from '../node/status/node-status-manager.ts'
import type { PodManager } from '../pods/pod-manager.ts'
import { mirrorManager } from '../pods/static/mirror-manager.ts'
import type { AgentCounters } from '../usage/agent-counters.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type MembershipParts = {
  readonly dataDir: string
  readonly root: string
  readonly configuration: AgentConfiguration
  readonly identity: AgentIdentity
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: AgentMachine
  readonly controlPlane: MqttControlPlane
  readonly status: NodeStatusManager
  readonly pods: PodManager
  readonly volumePools: Pick<VolumePools, 'open'>
  readonly link: ApiLink
  readonly counters: AgentCounters
  readonly log: Log
}

/** The API as this node uses it, and the cells that its answers and the renewal of the certificate write. */
export type ApiLink = {
  readonly api: ApiClient
  readonly credentials: Cell<NodeCredentials>
  /** Addresses of the fleet's controllers. */
  readonly servers: Cell<KeptServers>
  /** The API that is used now: `https://HOST:PORT`. */
  readonly url: () => string
  /** From an HTTP answer of the controller; an object, so that the same second twice is a change. */
  readonly serverTime: Cell<{ readonly wallMs: number } | undefined>
}

/** It connects when it is used. */
export function openApiLink(identity: AgentIdentity, { date }: Pick<AgentMachine, 'date'>): ApiLink {
  const credentials = cell<NodeCredentials>(identity)
  const serverTime = cell<{ readonly wallMs: number } | undefined>(undefined)
  const servers = cell<KeptServers>(identity, equalServers)
  const choice = serverChoice(() => keptServers(servers.get()).apiServers)
  const api = apiClient(() => {
    const url = choice.current()
    return {
      url,
      ...credentials.get(),
      knownTime: date.knownTime,
      onServerTime: (wallMs) => serverTime.set({ wallMs }),
      onUnreachable: () => void choice.failed(url),
    }
  })
  return { api, credentials, servers, url: choice.current, serverTime }
}

export type Membership = {
  readonly listener: ControlPlaneListener
  readonly loops: readonly Loop[]
  /** Those of now: they change when the certificate is renewed. */
  readonly credentials: () => NodeCredentials
}

export function assembleMembership(parts: MembershipParts): Membership {
  const { configuration, identity, board, write, machine, controlPlane, pods, link, log } = parts
  const { rebootRequest, agentRelease, osUpgrade } = write('rebootRequest', 'agentRelease', 'osUpgrade')
  const { clock, date, random } = machine
  const { controllerClock } = date
  const { nodeName } = identity
  const { api, credentials, serverTime } = link
  const certificates = renewal(parts)
  const registering = registrationOf(parts)
  const mirrors = mirrorManager({ api, isHere: pods.isHere, clock, random, log }, { nodeName })
  const reporter = checkpointReporter({
    api,
    nodeName,
    remembered: pods.lastDesired,
    desired(message) {
      pods.desired(message)
      mirrors.desired(message)
      rebootRequest.set(message.reboot)
      agentRelease.set({ release: message.agent })
      osUpgrade.set({ upgrade: message.osUpgrade })
    },
    accepted: controlPlane.reportEverything,
    clock,
    random,
    log,
  })
  const contents = desiredContents({
    remembered: pods.lastDesired,
    desired: reporter.desired,
    report: controlPlane.reportContents,
    log,
  })
  credentials.onChange(controlPlane.use)
  credentials.onChange(registering.again)
  serverTime.onChange((time) => time && controllerClock.observe(time.wallMs, true))
  serverTime.onChange(certificates.dateChanged)
  board.staticPods.subscribe(mirrors.staticPods)
  return {
    credentials: credentials.get,
    listener: {
      ...contents,
      store: registering.store,
      trust: certificates.trust,
      servers: published(parts),
      controllerTime: controllerClock.observe,
    },
    loops: [
      reporter,
      certificates,
      mirrors,
      ...(configuration.registerNode ? [{ name: 'registration', run: registering.run }] : []),
    ],
  }
}

/** The certificate manager. It is the writer of the credentials. */
function renewal({ root, dataDir, identity, machine, link, counters, log }: MembershipParts) {
  const { api, credentials } = link
  const { date, random, watch } = machine
  const clock = watch.clockFor('certificate')
  return certificateManager({
    credentials: credentials.get,
    save: (next) => renewIdentity(dataDir, identity, { ...identity, ...link.servers.get(), ...next }),
    use: credentials.set,
    async renew(signal) {
      // Loaded on demand: it brings the certificate code, which a running agent does without.
      const { renewedCertificate } = await import('../join/renewal.ts')
      const { nodeName } = identity
      const hardware = await readHardwareIdentity(root)
      return renewedCertificate({ nodeName, hardware, trusted: credentials.get().ca }, { api, clock }, signal)
    },
    authorities: (signal) => authoritiesOf(api, signal),
    renewalFailed: counters.renewalFailed,
    nowMs: date.estimatedMs,
    clock,
    random,
    log,
  })
}

/** Takes the addresses of all controllers, and keeps them for the next start. */
function published({ dataDir, identity, link: { servers, credentials }, log }: MembershipParts) {
  return (found: PublishedServers) => {
    const { apiUrl, mqttUrl } = identity
    const before = servers.get()
    servers.set({ apiUrl, mqttUrl, ...publishedServers(found) })
    const next = servers.get()
    if (equalServers(before, next)) return
    log.info('Addresses of the controllers changed', keptServers(next))
    renewIdentity(dataDir, identity, { ...identity, ...next, ...credentials.get() }).catch((error: unknown) =>
      log.warn('Cannot save the addresses of the controllers', { error }),
    )
  }
}

function equalServers(one: KeptServers, other: KeptServers): boolean {
  return JSON.stringify(keptServers(one)) === JSON.stringify(keptServers(other))
}

type Description = Awaited<ReturnType<typeof describeMachine>>

/** The registration loop. After the first registration it reads the description of the machine, and registers again with it. */
function registrationOf(parts: MembershipParts) {
  const { root, configuration, identity, board, machine, status, link, log } = parts
  const { api, credentials } = link
  const pools = registeredPools(board.pools, () => reported(parts.volumePools, log))
  const { operatingSystem, architecture } = machine.inventory.system
  const description = cell<Description | undefined>(undefined)
  let isDescribed = false
  const registering = registration({
    api,
    facts: async () => ({
      nodeName: identity.nodeName,
      operatingSystem,
      architecture,
      hardware: await readHardwareIdentity(root),
      annotations: {
        ...described(description.get() ?? {}),
        [inventoryAnnotation]: JSON.stringify(await readMachineInventory(root)),
        ...reportedAs(agentUpdateAnnotation, board.updateReport.get()),
        ...reportedAs(osUpdatesAnnotation, board.osReport.get()),
        ...(await pools.annotations()),
      },
      nodeLabels: configuration.nodeLabels,
      taints: configuration.registerWithTaints,
      trusted: certificatesIn(credentials.get().ca).map(caHash),
      leaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
      allowsRemoteReboot: configuration.enableRemoteReboot,
    }),
    status: () => firstValue(board.nodeStatus),
    registered() {
      status.report()
      if (isDescribed) return
      isDescribed = true
      // It starts programs: once, and nothing waits for it.
      void describeMachine().then(description.set)
    },
    clock: machine.watch.clockFor('registration'),
    log,
  })
  description.onChange(registering.again)
  board.updateReport.onChange(registering.again)
  board.osReport.onChange(registering.again)
  pools.onChange(registering.again)
  return registering
}

/** A pool that is missing is not reported: what was written before is not true any more. */
async function reported(pools: Pick<VolumePools, 'open'>, log: Log): Promise<readonly Pool[]> {
  const opened = await pools.open()
  for (const { state } of opened) {
    if (!('missing' in state)) continue
    const { name, missing } = state
    log.error('A pool of this machine is missing: claims are not placed in it', {
      ...(name && { pool: name }),
      missing,
    })
  }
  return opened.flatMap(({ state }) => ('id' in state ? [state] : []))
}

function reportedAs(
  annotation: string,
  report: AgentUpdateReport | OsReport | undefined,
): { readonly [annotation: string]: string } {
  return report === undefined ? {} : { [annotation]: JSON.stringify(report) }
}

function described({ board, processor }: { readonly board?: string; readonly processor?: string }) {
  return {
    [probePortAnnotation]: String(probePort),
    [referencesAnnotation]: 'true',
    [mountsClaimsAnnotation]: 'true',
    [mapsBlocksAnnotation]: 'true',
    ...(board === undefined ? {} : { 'bramble.dev/board': board }),
    ...(processor === undefined ? {} : { 'bramble.dev/processor': processor }),
  }
}
