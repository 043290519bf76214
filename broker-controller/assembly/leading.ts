/** What the controller that leads has beside the API: the MQTT broker, what it reads from and writes to nodes, and all control loops. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { maintenanceIdentity, nodeIdentity } from '../../api/identity.ts'
import { trustHash } from '../../certs/ca-hash.ts'
import { checkNodeCSR } from '../../certs/csr-check.ts'
import { aborted } from '../../daemon/aborted.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import type { Loop } from '../../daemon/run.ts'
import type { Dashboard } from '../../dashboard/server/dashboard.ts'
import { remoteAvailability } from '../apiserver/aggregator/remote-availability.ts'
import { requestEviction } from '../apiserver/filters/eviction-request.ts'
import { limitMessages } from '../broker/inbox/message-limits.ts'
import { nodeInbox } from '../broker/inbox/node-inbox.ts'
import { networkOutbox } from '../broker/outbox/network-outbox.ts'
import { nodeOutbox } from '../broker/outbox/node-outbox.ts'
import { servicesOutbox } from '../broker/outbox/services-outbox.ts'
import { sessionRequests } from '../broker/outbox/session-requests.ts'
import { usageRequests } from '../broker/outbox/usage-requests.ts'
import { volumesOutbox } from '../broker/outbox/volumes-outbox.ts'
import { policiesOutbox } from '../broker/policies/policies-outbox.ts'
import { urlHost } from '../configuration/server-names.ts'
import { kubernetesServiceController } from '../controllers/kubernetes-service-controller.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { notificationLoop } from '../integrations/notifications/notification-loop.ts'
import { sendNotification } from '../integrations/notifications/send-notification.ts'
import { followAuthority } from '../replicas/foreign-authority.ts'
import { leadershipLoops } from '../replicas/leadership-loops.ts'
import { beginIssuedCertificates, recordIssuedCertificate } from '../store/certificates/issued-certificates.ts'
import { openCheckpointWindow } from '../store/checkpoints/checkpoint-window.ts'
import { openRestoreHold } from '../store/checkpoints/restore-hold.ts'
import type { Term } from '../store/election/election.ts'
import { untilAnswered } from '../store/election/until-answered.ts'
import { assembledHomeAssistant } from './assembled-home-assistant.ts'
import { ensureClusterInfo, type ServerLists } from './bootstrap-objects.ts'
import { controlLoops } from './control-plane.ts'
import { openFleetBroker } from './fleet-broker.ts'
import { verifyPodNetwork } from './fleet-pod-network.ts'
import type { OpenApi } from './open-api.ts'
import type { BrokerControllerNeeds, Closing, ControllerParts } from './parts.ts'

export type Leading = { readonly loops: readonly Loop[]; readonly status: () => string }

/** `term`: of one of several controllers. What has to be written first is tried again until `signal` aborts. */
export type Tenure = { readonly signal: AbortSignal; readonly term?: Term }

/** Rejects if the MQTT port cannot be opened, and with LeadershipLostError where another controller may lead. */
export async function openLeading(
  needs: BrokerControllerNeeds,
  parts: ControllerParts,
  api: OpenApi,
  closing: Closing,
  { signal, term }: Tenure,
): Promise<Leading> {
  const { configuration, log } = needs
  const { shared, origin, checkpoints, late, replica, guard } = parts
  const keep = replica?.election.keep ?? guard?.run ?? aborted
  const written: Written = (what, act) => untilAnswered({ what, keep, clock, log, signal }, act)
  if (replica !== undefined) {
    await written('the network of pods', () => verifyPodNetwork(needs, shared.store))
    // As at the start: the fleet may have another one since, and its files may have been copied here.
    await followAuthority(shared.store, join(needs.flags.dataDir, authorityFolderName), log)
    await parts.own.reload()
    await parts.makeMissingKeys()
    await written('the objects of the fleet', parts.objects.ensure)
  }
  if (configuration.externalBroker !== undefined) {
    await written('issued certificates', () => beginIssuedCertificates(shared, parts.own.authority().hash))
  }
  const window = await written('the checkpoint window', () =>
    openCheckpointWindow(shared, origin, configuration.checkpoints),
  )
  late?.begin(window)
  const hold = await openRestoreHold(shared, checkpoints, origin)
  const ports = await openBroker(needs, parts, api, closing)
  const addresses = { apiServer: api.server, mqttServer: ports.mqttServer }
  await written('the addresses of this controller', async () => replica?.register(addresses))
  await publishAddresses(needs, parts, api, { ...ports, written })
  replica?.lead(true)
  const { mqttPort, broker } = ports
  return {
    status() {
      const held = hold.describe()
      const mqtt = broker.isAway() ? 'has no connection to the MQTT server' : `MQTT on port ${mqttPort}`
      return `Serves the Kubernetes API on port ${api.port} and ${mqtt}${held ? `. ${held}` : ''}`
    },
    loops: [
      ...fleetLoops(needs, { ...parts, hold }, api, ports),
      ...(replica === undefined || term === undefined ? [] : leadershipLoops({ ...shared, replica, broker, term })),
    ],
  }
}

/** Repeats `act` while the store does not answer. */
type Written = <T>(what: string, act: () => Promise<T>) => Promise<T>

type LeadingParts = ControllerParts & {
  readonly hold: Awaited<ReturnType<typeof openRestoreHold>>
}

/** The MQTT broker, and the parts behind it. */
async function openBroker(
  { configuration }: BrokerControllerNeeds,
  parts: ControllerParts,
  api: OpenApi,
  closing: Closing,
) {
  const { shared, origin, checkpoints, own, registry, names, usage, sessions } = parts
  const { nodeLifecycle } = configuration
  const epoch = randomUUID()
  const broker = await openFleetBroker(configuration, parts, epoch)
  closing.add(() => broker.close())
  const servers = fleetServers(configuration, parts, api)
  const outbox = nodeOutbox({
    ...shared,
    broker,
    epoch,
    origin,
    checkpoints,
    contentProver: parts.contentProver,
    apiServer: { host: names.advertisedHost, port: api.port },
    trust: () => trustHash(own.authority().trusted),
    ...(servers && { servers }),
    nodeMonitorGraceMs: nodeLifecycle.nodeMonitorGracePeriodMs,
    nodeLeaseLimitMs: nodeLifecycle.nodeLeaseDurationLimitMs,
    podNetwork: configuration.podNetwork,
  })
  const ipv6 = configuration.ipv6 !== undefined
  const network = configuration.podNetwork && networkOutbox({ ...shared, broker, epoch }, configuration.podNetwork)
  const networkLoops =
    network === undefined
      ? []
      : [
          network,
          servicesOutbox({ ...shared, broker, epoch, ipv6, nodeCount: network.nodeCount }),
          policiesOutbox({ ...shared, broker, epoch, origin, checkpoints, ipv6 }),
        ]
  const inbox = nodeInbox({
    ...shared,
    addressRules: parts.admission.addressRules,
    usage,
    sessions,
    storage: parts.storage,
    unstored: parts.unstored,
    broker,
    podsOf: outbox.podsOf,
    desired: outbox,
    registry,
  })
  const listener = limitMessages(inbox, { clock, registry })
  const mqttPort = await broker.listen(listener)
  const mqttServer = configuration.externalBroker?.url ?? `mqtts://${names.advertised}:${mqttPort}`
  return { broker, epoch, mqttPort, mqttServer, servers, inbox, outbox, networkLoops }
}

/** The addresses of all controllers and brokers; undefined: both are those of this controller. */
function fleetServers(
  { externalBroker }: BrokerControllerNeeds['configuration'],
  { replica }: ControllerParts,
  api: OpenApi,
): (() => ServerLists) | undefined {
  if (externalBroker === undefined) return replica?.servers
  return () => ({ apiServers: replica?.servers().apiServers ?? [api.server], mqttServers: [externalBroker.url] })
}

type BrokerPorts = Awaited<ReturnType<typeof openBroker>>

/** Writes cluster-info and the kubeconfig, now and when the certificates of the controller change. */
async function publishAddresses(
  needs: BrokerControllerNeeds,
  parts: ControllerParts,
  api: OpenApi,
  { broker, mqttPort, mqttServer, servers, outbox, written }: BrokerPorts & { readonly written: Written },
): Promise<void> {
  const { configuration, log, flags } = needs
  const { shared, own, replica } = parts
  const clusterInfo = () => {
    const { trusted, hash: caHash } = own.authority()
    return { server: api.server, mqttPort, trusted, caHash, servers: servers?.(), ranges: configuration.podNetwork }
  }
  const { caHash } = clusterInfo()
  const hashBefore = await written('kube-public/cluster-info', () => ensureClusterInfo(shared, clusterInfo()))
  if (hashBefore !== undefined && hashBefore !== caHash) {
    const remedy = `Restore ${join(flags.dataDir, authorityFolderName)} from a backup, or let every machine join again`
    log.warn('The fleet trusts another authority', { trusted: hashBefore, caHash, remedy })
  }
  replica?.controllers.onChange(() => {
    ensureClusterInfo(shared, clusterInfo()).catch((error: unknown) =>
      log.warn('Addresses of the controllers not published', { error }),
    )
    outbox.announce()
  })
  own.onChange(async () => {
    broker.renew()
    await parts.extensions.authentication.refresh()
    await ensureClusterInfo(shared, clusterInfo())
    outbox.announce()
  })
  const kubeconfig = await writeOwnKubeconfig(needs, parts, api)
  const here = urlHost(configuration.listen.bindAddress ?? '127.0.0.1')
  log.info('Controller ready', {
    api: `https://${here}:${api.port}`,
    mqtt: configuration.externalBroker === undefined ? `mqtts://${here}:${mqttPort}` : mqttServer,
    kubeconfig,
    caHash,
  })
}

/** The administrator's kubeconfig on this machine. Resolves with its path. */
export function writeOwnKubeconfig(
  { configuration }: BrokerControllerNeeds,
  { own, replica }: ControllerParts,
  { server, port }: OpenApi,
): Promise<string> {
  const here = urlHost(configuration.listen.bindAddress ?? '127.0.0.1')
  return own.writeKubeconfig({
    server,
    // An address that was not configured comes and goes with the network: the local one is then the safe choice.
    local: { server: `https://${here}:${port}`, isCurrent: configuration.advertiseAddress === undefined },
    ...(replica && { others: replica.servers().apiServers.filter((one) => one !== server) }),
  })
}

function dashboardLoops({ fleet, run }: Dashboard): readonly Loop[] {
  return [
    { name: 'dashboard', run: fleet.run },
    { name: 'dashboard-sessions', run },
  ]
}

function fleetLoops(
  { configuration, flags }: BrokerControllerNeeds,
  parts: LeadingParts,
  api: OpenApi,
  { broker, epoch, inbox, outbox, networkLoops }: BrokerPorts,
): readonly Loop[] {
  const { shared, creation, scales, origin, names, own, checkpoints, hold, usage, sessions, registry, replica } = parts
  const { storage, extensions } = parts
  const { apiServices } = parts.registered
  const authorities = { trusted: () => own.authority().trusted, onChange: own.onChange }
  return [
    parts.objects,
    checkpoints,
    hold,
    inbox,
    outbox,
    ...networkLoops,
    volumesOutbox({ ...shared, broker, epoch, origin, hold }),
    ...broker.loops,
    ...(api.dashboard === undefined ? [] : dashboardLoops(api.dashboard)),
    usageRequests({ usage, broker, clock, log: shared.log }),
    sessionRequests({ sessions, broker, clock, log: shared.log }),
    extensions.authentication,
    extensions.discovery,
    remoteAvailability({ ...shared, apiServices, servers: extensions.servers }),
    ...controlLoops(
      {
        ...shared,
        extensionContent: extensions.content,
        extensionObjects: extensions.objects,
        creation,
        scales,
        usage,
        storage,
        unstored: parts.unstored,
        sessions,
        backupKeys: parts.backupKeys,
        registry,
        random: Math.random,
        signer: own.signer,
        issued: (node, pem) => recordIssuedCertificate(shared, nodeIdentity(node).user, pem, own.authority().hash),
        clientSigner: own.clientSigner,
        checkRequest: checkNodeCSR,
        origin,
        checkpoints,
        hold,
        authorities,
        podOverwritten: inbox.podOverwritten,
        evict: (pod, signal) => requestEviction(pod, (request) => api.api.local(maintenanceIdentity, request, signal)),
        refusesNodes: () => broker.isAway() || replica?.isLeading() === false,
      },
      configuration,
    ),
    ...(configuration.notify === undefined
      ? []
      : [notificationLoop({ ...shared, send: sendNotification }, configuration.notify)]),
    ...(configuration.homeAssistant === undefined
      ? []
      : [assembledHomeAssistant(parts, api, configuration.homeAssistant, flags.dataDir)]),
    kubernetesServiceController(shared, {
      serviceCIDR: configuration.serviceCIDR,
      address: names.advertisedHost,
      port: api.port,
      ...(replica && { others: () => replica.runningWith(api.port) }),
    }),
  ]
}
