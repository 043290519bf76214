/** Configuration → store → ports → controllers, running until the signal aborts. */
import { randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { trustHash } from '../certs/ca-hash.ts'
import { issuerOf, onlyAuthority, signerOf } from '../certs/client-certificate.ts'
import { checkNodeCSR, commonNameOfCSR } from '../certs/csr-check.ts'
import { systemClock as clock, rfc3339 } from '../daemon/clock.ts'
import { withinOr } from '../daemon/deadline.ts'
import { removeUnfinished, replaceFile } from '../daemon/durable-file.ts'
import { type Log, storyOf } from '../daemon/log.ts'
import { limitLog } from '../daemon/log-limit.ts'
import { metricsRegistry } from '../daemon/metrics-registry.ts'
import { version } from '../daemon/process/version.ts'
import { addProcessMetrics } from '../daemon/process-metrics.ts'
import { type Loop, runLoops } from '../daemon/run.ts'
import { notifierLoop, type SystemdNotifier } from '../daemon/watchdog/systemd-notifier.ts'
import { ensureDefaultRoles } from './access/reconcile-roles.ts'
import { openTokenKeys } from './access/service-account-keys.ts'
import { adminSocket, adminSocketPath } from './admin-socket.ts'
import { openAuthorizer } from './apiserver/access/authorizer.ts'
import { serviceAccountTokens } from './apiserver/access/tokens/service-account-tokens.ts'
import { auditFile } from './apiserver/audit/audit-file.ts'
import { auditLog } from './apiserver/audit/audit-log.ts'
import { controllerCreation } from './apiserver/handlers/controller-creation.ts'
import { controllerScales } from './apiserver/handlers/controller-scales.ts'
import { serviceNetwork } from './apiserver/handlers/service-network.ts'
import { apiServer } from './apiserver/http/http-server.ts'
import { serviceConnections } from './apiserver/proxy/service-connections.ts'
import { usageLedger } from './apiserver/quota/quota-ledger.ts'
import { webhookAdmission } from './apiserver/webhooks/webhook-admission.ts'
import { webhookCaller } from './apiserver/webhooks/webhook-call.ts'
import { parseYamlBody } from './apiserver/wire/yaml-body.ts'
import { assembledDashboard } from './assembled-dashboard.ts'
import { ensureClusterInfo, ensureFlowControl, ensureNamespaces, ensurePriorityClasses } from './bootstrap-objects.ts'
import { limitMessages } from './broker/inbox/message-limits.ts'
import { nodeInbox } from './broker/inbox/node-inbox.ts'
import { openMqttBroker } from './broker/mqtt/mqtt-broker.ts'
import { networkOutbox } from './broker/outbox/network-outbox.ts'
import { nodeOutbox } from './broker/outbox/node-outbox.ts'
import { servicesOutbox } from './broker/outbox/services-outbox.ts'
import { sessionRequests } from './broker/outbox/session-requests.ts'
import { usageRequests } from './broker/outbox/usage-requests.ts'
import { authorityFolderName, makeBackup } from './commands/backup.ts'
import type { ControllerFlags } from './commands/command-line.ts'
import type { ControllerConfiguration } from './configuration.ts'
import { builtInKinds, controlLoops } from './control-plane.ts'
import { kubernetesServiceController } from './controllers/kubernetes-service-controller.ts'
import { meterEventLoop } from './event-loop-metrics.ts'
import { openStore, pidFileName } from './open-store.ts'
import { openOwnCertificates } from './own-certificates/own-certificates.ts'
import { anyAddress, serverNames, urlHost } from './server-names.ts'
import { sessionBoard } from './sessions/session-board.ts'
import { openCheckpointWindow } from './store/checkpoints/checkpoint-window.ts'
import { openRestoreHold } from './store/checkpoints/restore-hold.ts'
import { eventRecorder } from './store/event-recorder.ts'
import { openRevocationList } from './store/revocations.ts'
import type { OpenedStore, Store } from './store/store.ts'
import { usageBoard } from './usage/usage-board.ts'

const storeDeadlineMs = 5_000

export type BrokerControllerNeeds = {
  readonly configuration: ControllerConfiguration
  readonly flags: ControllerFlags
  readonly log: Log
  /** Is notified when the controller is ready, and while it is healthy; undefined: there is no service manager. */
  readonly service: SystemdNotifier | undefined
}

/** Runs what it is given at the end, the latest first. */
type Closing = { add(close: () => Promise<void>): void }

/** Resolves when `signal` has aborted and everything is closed. Rejects with the error that ended the controller. */
export async function runBrokerController(needs: BrokerControllerNeeds, signal: AbortSignal): Promise<void> {
  const { flags, log } = needs
  const { dataDir } = flags
  log.info('Controller starts', { version, dataDir, pid: process.pid })
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const closings: (() => Promise<void>)[] = []
  try {
    const closing: Closing = { add: (close) => void closings.unshift(close) }
    const opening = openStore({ dataDir, etcd: needs.configuration.etcd, clock, log, signal })
    const opened = await opening.catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
    if (opened === undefined) return
    await removeUnfinished(dataDir)
    closing.add(() => opened.store.close())
    const pidFile = join(dataDir, pidFileName)
    await replaceFile(pidFile, `${process.pid}\n`, 0o644)
    closing.add(() => rm(pidFile, { force: true }))
    const parts = await openParts(needs, opened, closing)
    const ports = await openPorts(needs, parts, closing)
    await publishAddresses(needs, parts, ports)
    const socket = await openAdminSocket(needs, parts, opened)
    await runLoops([...ownLoops(needs, parts, ports), { name: 'admin-socket', run: socket.run }], signal, log)
  } finally {
    for (const close of closings) await close()
  }
}

/** Everything that the ports and the loops share. */
async function openParts(
  { configuration, flags, log }: BrokerControllerNeeds,
  { store, origin, problems, guard }: OpenedStore,
  closing: Closing,
) {
  const { listen } = configuration
  const machine = { hostname: hostname(), interfaces: networkInterfaces() }
  const names = serverNames(machine, { ...configuration, bindAddress: listen.bindAddress })
  const revocations = await openRevocationList({ store, clock, log })
  const own = await openOwnCertificates({
    ...configuration.certificates,
    dataDir: flags.dataDir,
    names: names.all,
    storeID: origin.id,
    kubeconfig: flags.kubeconfig,
    revokedBefore: revocations.before,
    clock,
    random: Math.random,
    log,
  })
  await ensureNamespaces(store)
  await ensurePriorityClasses(store)
  await ensureFlowControl(store)
  await ensureDefaultRoles({ store, clock })
  const access = await openAuthorizer({ store, clock, log })
  const keyFolder = join(flags.dataDir, authorityFolderName)
  let tokenKeys = await openTokenKeys(keyFolder)
  closing.add(() => access.run(AbortSignal.abort()))
  const registry = metricsRegistry()
  const stopProcessMetrics = addProcessMetrics(registry)
  const stopMeter = meterEventLoop({ registry, clock, log })
  closing.add(async () => {
    stopMeter()
    stopProcessMetrics()
  })
  const shared = {
    store,
    kinds: builtInKinds,
    events: eventRecorder({ store, clock }),
    quotas: usageLedger({ store, kinds: builtInKinds, clock }),
    clock,
    log,
  }
  const checkpoints = await openCheckpointWindow(shared, origin, configuration.checkpoints)
  const hold = await openRestoreHold(shared, checkpoints, origin)
  const sessions = sessionBoard({ clock })
  const connections = serviceConnections({ store, sessions, clock, random: Math.random })
  const [caller, limited] = [webhookCaller(connections), limitLog(log, clock)]
  closing.add(async () => {
    caller.close()
    limited.close()
  })
  const admission = {
    services: serviceNetwork(configuration.serviceCIDR),
    webhooks: webhookAdmission({ store, kinds: builtInKinds, caller, clock, registry, limited }),
    commonNameOf: commonNameOfCSR,
  }
  const admitting = { ...shared, ...admission, access, random: Math.random, parseYaml: parseYamlBody }
  return {
    shared,
    admission,
    creation: controllerCreation(admitting, builtInKinds),
    scales: controllerScales(admitting, builtInKinds),
    origin,
    guard,
    readiness: problems === undefined ? [] : [{ name: 'etcd', check: () => withoutProblems(problems) }],
    access,
    tokens: serviceAccountTokens(() => tokenKeys, store),
    reloadTokenKeys: async () => {
      tokenKeys = await openTokenKeys(keyFolder)
    },
    names,
    host: listen.bindAddress ?? anyAddress(machine),
    revocations,
    own,
    registry,
    checkpoints,
    hold,
    usage: usageBoard({ clock }),
    sessions,
  }
}

type Parts = Awaited<ReturnType<typeof openParts>>

/** The Kubernetes API and the MQTT broker, with the parts behind the broker. Rejects if a port cannot be opened. */
async function openPorts({ configuration, log }: BrokerControllerNeeds, parts: Parts, closing: Closing) {
  const { listen, certificates, nodeLifecycle } = configuration
  const { shared, admission, origin, access, tokens, host, names } = parts
  const { revocations, own, registry, checkpoints, usage, sessions, readiness } = parts
  let portOfApi: number | undefined
  const serverUrl = () => (portOfApi === undefined ? undefined : `https://${names.advertised}:${portOfApi}`)
  const dashboard = configuration.dashboard.enabled
    ? assembledDashboard(parts, configuration.dashboard, serverUrl)
    : undefined
  const auditing = { settings: configuration.auditLog, clock, registry, log }
  const file = auditing.settings && auditFile({ ...auditing, settings: auditing.settings })
  if (file !== undefined) closing.add(() => file.close())
  const api = apiServer({
    ...shared,
    ...admission,
    access,
    tokens,
    serverUrl,
    ...(dashboard && { dashboard }),
    usage,
    sessions,
    registry,
    tls: own.tls(),
    host,
    port: listen.apiPort,
    version,
    origin,
    checkpoints,
    revocations,
    readiness,
    isOurs: (der) => signerOf(der, own.authority().trusted) !== undefined,
    lapsedWindowMs: certificates.expiredWindowMs,
    ...(file && { audit: auditLog({ file, clock, registry }) }),
  })
  const { port: apiPort } = await opening('Kubernetes API', listen.apiPort, '--api-port', api.listen())
  portOfApi = apiPort
  closing.add(() => api.run(AbortSignal.abort()))
  closing.add(async () => sessions.close())

  const broker = await openMqttBroker({
    tls: own.tls(),
    clock,
    log: shared.log,
    registry,
    revocations,
    authorities: {
      only: () => onlyAuthority(own.authority().trusted),
      of: (certificate) => issuerOf(certificate, own.authority().trusted),
    },
  })
  closing.add(() => broker.close())
  const epoch = randomUUID()
  const outbox = nodeOutbox({
    ...shared,
    broker,
    epoch,
    origin,
    checkpoints,
    apiServer: { host: names.advertisedHost, port: apiPort },
    trust: () => trustHash(own.authority().trusted),
    nodeMonitorGraceMs: nodeLifecycle.nodeMonitorGracePeriodMs,
    nodeLeaseLimitMs: nodeLifecycle.nodeLeaseDurationLimitMs,
    podNetwork: configuration.podNetwork,
  })
  const networkLoops = configuration.podNetwork
    ? [
        networkOutbox({ ...shared, broker, epoch }, configuration.podNetwork),
        servicesOutbox({ ...shared, broker, epoch }),
      ]
    : []
  const inbox = nodeInbox({ ...shared, usage, sessions, broker, podsOf: outbox.podsOf, registry })
  const listener = limitMessages(inbox, { clock, registry })
  const listening = broker.listen({ port: listen.mqttPort, host }, listener)
  const mqttPort = await opening('MQTT', listen.mqttPort, '--mqtt-port', listening)
  return { api, apiPort, broker, mqttPort, inbox, outbox, networkLoops, dashboard }
}

type Ports = Awaited<ReturnType<typeof openPorts>>

/** Writes cluster-info and the kubeconfig, now and when the certificates of the controller change. */
async function publishAddresses(
  { configuration, log, flags }: BrokerControllerNeeds,
  parts: Parts,
  ports: Ports,
): Promise<void> {
  const { shared, names, own, revocations } = parts
  const { api, apiPort, broker, mqttPort, outbox } = ports
  const clusterInfo = () => {
    const { trusted, hash: caHash } = own.authority()
    return { server: `https://${names.advertised}:${apiPort}`, mqttPort, trusted, caHash }
  }
  const { caHash } = clusterInfo()
  const hashBefore = await ensureClusterInfo(shared, clusterInfo())
  if (hashBefore !== undefined && hashBefore !== caHash) {
    const remedy = `Restore ${join(flags.dataDir, 'authority')} from a backup, or let every machine join again`
    log.warn('The fleet trusts another authority', { trusted: hashBefore, caHash, remedy })
  }
  own.onChange(async () => {
    for (const server of [api, broker]) server.renew(own.tls())
    await ensureClusterInfo(shared, clusterInfo())
    outbox.announce()
  })
  revocations.onChange(() => {
    own.revoked().catch((error) => log.error('Kubeconfig not written', { error }))
  })
  const here = urlHost(configuration.listen.bindAddress ?? '127.0.0.1')
  const kubeconfig = await own.writeKubeconfig({
    server: clusterInfo().server,
    // An address that was not configured comes and goes with the network: the local one is then the safe choice.
    local: { server: `https://${here}:${apiPort}`, isCurrent: configuration.advertiseAddress === undefined },
  })
  log.info('Controller ready', {
    api: `https://${here}:${apiPort}`,
    mqtt: `mqtts://${here}:${mqttPort}`,
    kubeconfig,
    caHash,
  })
}

async function openAdminSocket(
  { flags, log }: BrokerControllerNeeds,
  { own, reloadTokenKeys }: Parts,
  { backUp, rotateSecretsKey }: Pick<OpenedStore, 'backUp' | 'rotateSecretsKey'>,
) {
  const { dataDir } = flags
  const backup = async () => {
    if (backUp === undefined)
      throw new Error(
        'The objects are in etcd: back them up with etcdctl snapshot save, and copy authority/ and secrets.key of the data directory',
      )
    return makeBackup({ dataDir, backUp, now: rfc3339(clock.wallMs()), version }, randomUUID())
  }
  const reload = async () => {
    await reloadTokenKeys()
    await own.reload()
  }
  const rotate = async () => {
    if (rotateSecretsKey === undefined) throw new Error('This store does not encrypt Secrets itself')
    return rotateSecretsKey()
  }
  const socket = adminSocket({ path: adminSocketPath(dataDir), reload, backup, rotateSecretsKey: rotate, log })
  await socket.listen().catch((error) => log.warn('No backup can be made while this controller runs', { error }))
  return socket
}

function ownLoops({ configuration, service, log }: BrokerControllerNeeds, parts: Parts, ports: Ports): readonly Loop[] {
  const { shared, creation, scales, origin, access, names, own, revocations, checkpoints, hold, usage, sessions } =
    parts
  const { api, apiPort, broker, mqttPort, inbox, outbox, networkLoops, dashboard } = ports
  const authorities = { trusted: () => own.authority().trusted, onChange: own.onChange }
  const view = {
    ready: () => true,
    problems: () => storeProblems(shared.store),
    status: () => {
      const held = hold.describe()
      return `Serves the Kubernetes API on port ${apiPort} and MQTT on port ${mqttPort}${held ? `. ${held}` : ''}`
    },
  }
  return [
    ...(service === undefined ? [] : [notifierLoop(service, view, clock, log)]),
    ...(parts.guard === undefined ? [] : [parts.guard]),
    { name: 'api', run: api.run },
    ...(dashboard === undefined ? [] : [{ name: 'dashboard', run: dashboard.fleet.run }]),
    access,
    revocations,
    checkpoints,
    hold,
    own,
    inbox,
    outbox,
    ...networkLoops,
    usageRequests({ usage, broker, clock }),
    sessionRequests({ sessions, broker, clock, log }),
    ...controlLoops(
      {
        ...shared,
        creation,
        scales,
        usage,
        registry: parts.registry,
        random: Math.random,
        signer: own.signer,
        clientSigner: own.clientSigner,
        checkRequest: checkNodeCSR,
        origin,
        checkpoints,
        hold,
        authorities,
      },
      configuration,
    ),
    kubernetesServiceController(shared, {
      serviceCIDR: configuration.serviceCIDR,
      address: names.advertisedHost,
      port: apiPort,
    }),
  ]
}

/** Every part uses the store: the controller is healthy while the store answers, and while this process gets to ask it. */
async function storeProblems(store: Store): Promise<readonly string[]> {
  const answer = store.get('namespaces', { namespace: '', name: 'default' }).then(
    () => [],
    (error: unknown) => [`the store fails: ${storyOf(error)}`],
  )
  return withinOr(storeDeadlineMs, ['the store does not answer'], answer)
}

async function withoutProblems(problems: () => Promise<readonly string[]>): Promise<void> {
  const found = await problems()
  if (found.length > 0) throw new Error(found.join('; '))
}

/** The error of a port that cannot be opened names the flag that chooses another. */
async function opening<T>(what: string, port: number, flag: string, opened: Promise<T>): Promise<T> {
  try {
    return await opened
  } catch (cause) {
    const inUse = storyOf(cause).includes('EADDRINUSE')
    throw new Error(`Port ${port} (${what}) ${inUse ? 'is in use' : 'cannot be opened'}: choose another with ${flag}`, {
      cause,
    })
  }
}
