/** This machine as a member of its fleet: its certificate, its Node object, and what a controller must be told of it. */
import { certificatesIn } from '../../api/text/pem.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { apiClient } from '../../daemon/api-client.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { LoopWatch } from '../../daemon/watchdog/loop-watch.ts'
import { readHardwareIdentity } from '../adapters/kernel/host-identity.ts'
import { describeMachine, type Inventory } from '../adapters/kernel/host-inventory.ts'
import type { MqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { authoritiesOf } from '../join/authorities.ts'
import { type Identity, renewIdentity } from '../join/identity.ts'
import { type CertificateManager, certificateManager, type NodeCredentials } from '../node/certificate-manager.ts'
import { type CheckpointTeller, checkpointTeller } from '../node/checkpoint-teller.ts'
import type { KnownTimeKeeper } from '../node/known-time.ts'
import type { NodeStatusManager } from '../node/node-status-manager.ts'
import { type Registration, registration } from '../node/registration.ts'
import type { PodManager } from '../pods/pod-manager.ts'
import { type MirrorManager, mirrorManager } from '../pods/static/mirror-manager.ts'

export type MembershipParts = {
  readonly dataDir: string
  readonly root: string
  readonly configuration: AgentConfiguration
  readonly identity: Identity
  readonly inventory: Inventory
  readonly controlPlane: MqttControlPlane
  readonly knownTime: KnownTimeKeeper
  /** The controller said what time it has. */
  readonly heardTime: (wallMs: number) => void
  /** The date, by whoever knows it best. */
  readonly nowMs: () => number
  readonly status: NodeStatusManager
  readonly pods: PodManager
  readonly watch: LoopWatch
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export type Membership = {
  readonly certificates: CertificateManager
  readonly registering: Registration
  readonly mirrors: MirrorManager
  readonly teller: CheckpointTeller
}

export function assembleMembership(parts: MembershipParts): Membership {
  const { dataDir, root, configuration, identity, controlPlane, knownTime, nowMs } = parts
  const { status, pods, watch, clock, random, log } = parts
  const { nodeName } = identity
  const { system } = parts.inventory
  let credentials: NodeCredentials = identity
  const heardTime = (wallMs: number) => {
    parts.heardTime(wallMs)
    certificates.dateHeard()
  }
  const api = apiClient(() => ({ url: identity.apiUrl, ...credentials, knownTime, onServerTime: heardTime }))
  const certificateClock = watch.clockFor('certificate')
  const certificates = certificateManager({
    credentials: () => credentials,
    write: (next) => renewIdentity(dataDir, identity, { ...identity, ...next }),
    use(next) {
      credentials = next
      controlPlane.use(next)
      registering.again()
    },
    async renew(signal) {
      // Loaded here: it brings the certificate code, which a running agent does without.
      const { renewedCertificate } = await import('../join/renewal.ts')
      const hardware = await readHardwareIdentity(root)
      return renewedCertificate(
        { nodeName, hardware, trusted: credentials.ca },
        { api, clock: certificateClock },
        signal,
      )
    },
    authorities: (signal) => authoritiesOf(api, signal),
    nowMs,
    clock: certificateClock,
    random,
    log,
  })
  const mirrors = mirrorManager({ api, isHere: pods.isHere, clock, random, log }, { nodeName })
  let description: Awaited<ReturnType<typeof describeMachine>> | undefined
  const registering = registration({
    api,
    facts: async () => ({
      nodeName,
      operatingSystem: system.operatingSystem,
      architecture: system.architecture,
      hardware: await readHardwareIdentity(root),
      annotations: described(description ?? {}),
      nodeLabels: configuration.nodeLabels,
      taints: configuration.registerWithTaints,
      trusted: certificatesIn(credentials.ca).map(caHash),
      leaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
    }),
    status: status.first,
    registered() {
      status.report()
      if (description !== undefined) return
      description = {}
      // Starts programs: once, and nobody waits for it.
      void describeMachine().then((found) => {
        description = found
        registering.again()
      })
    },
    clock: watch.clockFor('registration'),
    log,
  })
  const teller = checkpointTeller({
    api,
    nodeName,
    remembered: pods.lastDesired,
    desired(message) {
      pods.desired(message)
      mirrors.desired(message)
    },
    told: controlPlane.reportEverything,
    clock,
    random,
    log,
  })
  return { certificates, registering, mirrors, teller }
}

function described({ board, processor }: { readonly board?: string; readonly processor?: string }) {
  return {
    ...(board === undefined ? {} : { 'bramble.dev/board': board }),
    ...(processor === undefined ? {} : { 'bramble.dev/processor': processor }),
  }
}
