/** The controller of the world: the API, the messages of nodes, the controllers and the scheduler, over the store on the disk of its machine. */
import { createPrivateKey } from 'node:crypto'
import { maintenanceIdentity } from '../../api/identity.ts'
import { uuidOf } from '../../api/text/uuid.ts'
import type { ServiceAccountTokens } from '../../broker-controller/apiserver/authentication/tokens/service-account-tokens.ts'
import { openAuthorizer } from '../../broker-controller/apiserver/authorization/authorizer.ts'
import type { RequestNeeds } from '../../broker-controller/apiserver/filters/api-request.ts'
import { requestEviction } from '../../broker-controller/apiserver/filters/eviction-request.ts'
import { localRequests } from '../../broker-controller/apiserver/filters/in-process-api.ts'
import { controllerCreation } from '../../broker-controller/apiserver/handlers/controller-creation.ts'
import { controllerScales } from '../../broker-controller/apiserver/handlers/controller-scales.ts'
import { serviceNetwork } from '../../broker-controller/apiserver/handlers/service-network.ts'
import { liveKinds } from '../../broker-controller/apiserver/kinds/custom/live-kinds.ts'
import { podSecurityAdmission } from '../../broker-controller/apiserver/pod-security/pod-security-admission.ts'
import { usageLedger } from '../../broker-controller/apiserver/quota/quota-ledger.ts'
import { parseYamlBody } from '../../broker-controller/apiserver/wire/yaml-body.ts'
import { ensureFleetObjects } from '../../broker-controller/assembly/bootstrap-objects.ts'
import { builtInKinds, controlLoops } from '../../broker-controller/assembly/control-plane.ts'
import { type NodeInbox, nodeInbox } from '../../broker-controller/broker/inbox/node-inbox.ts'
import { nodeOutbox } from '../../broker-controller/broker/outbox/node-outbox.ts'
import { volumesOutbox } from '../../broker-controller/broker/outbox/volumes-outbox.ts'
import {
  controllerConfiguration,
  emptyControllerConfiguration,
} from '../../broker-controller/configuration/configuration.ts'
import { sessionBoard } from '../../broker-controller/sessions/session-board.ts'
import { cachedStore } from '../../broker-controller/store/cached-store.ts'
import type { AnyStoredObject } from '../../broker-controller/store/changes.ts'
import { openCheckpointWindow } from '../../broker-controller/store/checkpoints/checkpoint-window.ts'
import { contentProver } from '../../broker-controller/store/checkpoints/content-proof.ts'
import { openRestoreHold } from '../../broker-controller/store/checkpoints/restore-hold.ts'
import { eventRecorder } from '../../broker-controller/store/event-recorder.ts'
import { frozenFromJSON } from '../../broker-controller/store/frozen/frozen-copy.ts'
import { type ObjectCache, objectCache } from '../../broker-controller/store/object-cache.ts'
import { versionCounter } from '../../broker-controller/store/sqlite/version-counter.ts'
import { writeBatches } from '../../broker-controller/store/sqlite/write-batches.ts'
import type { Store, StoreOrigin } from '../../broker-controller/store/store.ts'
import { freshBackupKeys } from '../../broker-controller/testing/fresh-backup-keys.ts'
import { storageBoard } from '../../broker-controller/usage/storage-board.ts'
import { unstoredReports } from '../../broker-controller/usage/unstored-reports.ts'
import { usageBoard } from '../../broker-controller/usage/usage-board.ts'
import type { Log } from '../../daemon/log.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import type { FromBroker, ToBroker } from '../broker/packets.ts'
import { type SimulatedBroker, simulatedBroker } from '../broker/simulated-broker.ts'
import type { BrokerServers } from '../broker/simulated-link.ts'
import type { Fact } from '../story/facts.ts'
import type { SimulatedNetwork } from '../world/simulated-network.ts'
import type { StoreFile } from '../world/store-file.ts'
import { openWire, type ProgramPlace } from '../world/wire.ts'
import { type ApiServers, serveApi } from './api-transport.ts'

export type ControllerNeeds = {
  readonly place: ProgramPlace
  readonly network: SimulatedNetwork
  readonly api: ApiServers
  readonly brokers: BrokerServers
  readonly random: () => number
  readonly log: Log
  readonly record: (fact: Fact) => void
}

export type ControllerProgramNeeds = ControllerNeeds & {
  readonly file: StoreFile
  /** Each change is forgotten at once: those who watch must list again. */
  readonly forgetsChanges: () => boolean
}

const configuration = controllerConfiguration({
  flags: { dataDir: '/', hosts: [] } as never,
  file: { ...emptyControllerConfiguration, podNetwork: 'node', dashboard: false },
  isTerminal: false,
})

/** Runs until the life of its place ends. Rejects where a part of it fails. */
export async function runSimulatedController(needs: ControllerProgramNeeds): Promise<void> {
  const { place, file, network, api, log } = needs
  const { clock } = place.life
  const { origin } = file
  const kinds = servedKinds()
  const store = openWorldStore(needs, kinds)
  await ensureFleetObjects(store, clock)
  const parts = await openControllerParts(needs, store, kinds)
  const window = await openCheckpointWindow(parts, origin)
  const hold = await openRestoreHold(parts, window, origin)
  serveApi({ ...parts, origin, checkpoints: window }, place, network, api)
  const { loops } = leadingLoops(needs, parts, { window, hold, origin })
  log.info('Controller ready')
  await runLoops([parts.access, ...loops], new AbortController().signal, log)
}

/** The built-in kinds; no other kind is defined in these worlds. */
export function servedKinds() {
  return liveKinds(builtInKinds)
}

/** What the API and the loops share, of a controller that leads or not. */
export async function openControllerParts({ place, random, log }: ControllerNeeds, store: Store, kinds: Kinds) {
  const { clock } = place.life
  const access = await openAuthorizer({ store, clock, log })
  return { ...controllerParts({ store, kinds, access, clock, log, random, newUID: () => uuidOf(random) }), access }
}

/** What a controller does that leads: messages of nodes, from now on, and the controllers. */
export function leadingLoops(
  { place, network, brokers, random, log, record }: ControllerNeeds,
  parts: Parts,
  opened: Opened,
): { readonly broker: SimulatedBroker; readonly loops: readonly Loop[] } {
  const delivered = (node: string, body: string) => record({ kind: 'delivered', node, body })
  const broker = simulatedBroker({ life: place.life, log, delivered })
  const { inbox, loops } = messageLoops(parts, { ...opened, broker, random })
  brokers.listen(place, (client) => {
    const [clientEnd, end] = openWire<ToBroker, FromBroker>(network, client, place)
    broker.accept(client.machine, end)
    return clientEnd
  })
  return { broker, loops: [opened.window, opened.hold, ...loops, ...controllerLoops(parts, { ...opened, inbox })] }
}

type Kinds = ReturnType<typeof liveKinds>

/** The store as it is on a disk, with its batches of writes. */
function openWorldStore({ place, file, random, log, forgetsChanges }: ControllerProgramNeeds, resources: Kinds): Store {
  const { clock } = place.life
  const own = file.openedBy(place.life)
  const versions = versionCounter(own)
  const kept = objectCache({ resources, clock, startVersion: versions.last, latestVersion: versions.last })
  const cache: ObjectCache = {
    ...kept,
    apply(resource, change) {
      kept.apply(resource, change)
      if (forgetsChanges()) kept.forget(resource, change.version)
    },
  }
  for (const { resource, body } of file.rows())
    cache.load(resource as never, frozenFromJSON(body) as AnyStoredObject, body.length)
  const writer = writeBatches({ path: 'store.db', file: own, versions, cache, clock, log, statusDelayMs: 100 })
  return cachedStore({ resources, cache, writer, clock, random })
}

type Shared = Pick<RequestNeeds, 'store' | 'access' | 'clock' | 'log' | 'random'> & {
  readonly kinds: Kinds
  readonly newUID: () => string
}

function controllerParts(shared: Shared) {
  const { store, kinds, clock } = shared
  const registry = metricsRegistry()
  return {
    ...shared,
    events: eventRecorder({ store, clock }),
    quotas: usageLedger({ store, kinds, clock }),
    registry,
    usage: usageBoard({ clock }),
    storage: storageBoard(),
    unstored: unstoredReports({ clock }),
    sessions: sessionBoard({ clock, newID: shared.newUID }),
    backupKeys: freshBackupKeys(),
    contentProver: contentProver(fleetAuthority),
    tokens: simulatedTokens,
    services: serviceNetwork(configuration.serviceCIDR),
    podSecurity: podSecurityAdmission({ store, clock, registry }, configuration.podSecurity),
    parseYaml: parseYamlBody,
    commonNameOf: () => undefined,
    version: '0.1.0',
    metrics: async () => ({ text: '', contentType: 'text/plain' }),
    readiness: [],
  }
}

type Parts = ReturnType<typeof controllerParts>
type Opened = {
  readonly window: Awaited<ReturnType<typeof openCheckpointWindow>>
  readonly hold: Awaited<ReturnType<typeof openRestoreHold>>
  readonly origin: StoreOrigin
}

function messageLoops(
  parts: Parts,
  {
    broker,
    window,
    hold,
    origin,
    random,
  }: Opened & { readonly broker: SimulatedBroker; readonly random: () => number },
): { readonly inbox: NodeInbox; readonly loops: readonly Loop[] } {
  const { nodeLifecycle } = configuration
  const epoch = uuidOf(random)
  const outbox = nodeOutbox({
    ...parts,
    ...{ broker, epoch, origin, checkpoints: window },
    nodeMonitorGraceMs: nodeLifecycle.nodeMonitorGracePeriodMs,
    nodeLeaseLimitMs: nodeLifecycle.nodeLeaseDurationLimitMs,
  })
  const inbox = nodeInbox({ ...parts, broker, podsOf: outbox.podsOf, desired: outbox })
  broker.listen(inbox)
  return { inbox, loops: [inbox, outbox, volumesOutbox({ ...parts, broker, epoch, origin, hold })] }
}

/** No certificate is requested in this world. */
function never(): never {
  throw new Error('There are no certificates in this world')
}

function controllerLoops(
  parts: Parts,
  { window, hold, origin, inbox }: Opened & { readonly inbox: NodeInbox },
): readonly Loop[] {
  const { kinds } = parts
  const local = localRequests({ ...parts, origin, checkpoints: window }, 'controller')
  return controlLoops(
    {
      ...parts,
      creation: controllerCreation(parts, kinds),
      scales: controllerScales(parts, kinds),
      ...{ signer: never as never, clientSigner: never as never, checkRequest: never, issued: undefined },
      ...{ origin, checkpoints: window, hold },
      authorities: { trusted: () => 'The authority of the world', onChange: () => undefined },
      podOverwritten: inbox.podOverwritten,
      evict: (pod, signal) => requestEviction(pod, (request) => local(maintenanceIdentity, request, signal)),
      refusesNodes: () => false,
    },
    configuration,
  )
}

/** Agents keep them for their pods. No program of the world uses one. */
const simulatedTokens: ServiceAccountTokens = {
  issue: ({ namespace, account }) => `token.${namespace}.${account.name}`,
  identify: async () => undefined,
  publicKeys: () => [],
}

/** The key of the fleet's authority, which is the same in each world: PKCS #8 of an Ed25519 key. */
function fleetAuthority() {
  return authority
}
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')
const authority = {
  key: createPrivateKey({ key: Buffer.concat([pkcs8Head, Buffer.alloc(32, 7)]), format: 'der', type: 'pkcs8' }),
  hash: 'authority-of-the-world',
}
