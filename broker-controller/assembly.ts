/** Configuration → store → ports → controllers, running until told to stop. */
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { trustHash } from '../certs/ca-hash.ts'
import { issuerOf, onlyAuthority, signerOf } from '../certs/client-certificate.ts'
import { commonNameOfCSR } from '../certs/csr.ts'
import { systemClock as clock, rfc3339 } from '../daemon/clock.ts'
import { withinOr } from '../daemon/deadline.ts'
import { removeUnfinished, replaceFile } from '../daemon/durable-file.ts'
import { type Log, storyOf } from '../daemon/log.ts'
import { type Loop, runLoops } from '../daemon/run.ts'
import { notifierLoop, type SystemdNotifier } from '../daemon/systemd-notifier.ts'
import { version } from '../daemon/version.ts'
import { adminSocket, adminSocketPath } from './admin-socket.ts'
import { apiServer } from './apiserver/http/http-server.ts'
import { ensureClusterInfo, ensureNamespaces, ensurePriorityClasses } from './bootstrap-objects.ts'
import { limitMessages } from './broker/message-limits.ts'
import { openMqttBroker } from './broker/mqtt-broker.ts'
import { nodeInbox } from './broker/node-inbox.ts'
import { nodeOutbox } from './broker/node-outbox.ts'
import { statsCaller } from './broker/stats-caller.ts'
import { authorityFolderName, isThere, makeBackup, storeFileName, unfinishedRestore } from './commands/backup.ts'
import type { Flags } from './commands/command-line.ts'
import type { ControllerConfiguration } from './configuration.ts'
import { builtInKinds, controlLoops } from './control-plane.ts'
import { meterEventLoop } from './event-loop-metrics.ts'
import { openOwnCertificates } from './own-certificates.ts'
import { anyAddress, serverNames, urlHost } from './server-names.ts'
import { openCheckpointWindow } from './store/checkpoint-window.ts'
import { eventRecorder } from './store/event-recorder.ts'
import { openRevocationList } from './store/revocations.ts'
import { StoreInUseError } from './store/sqlite/sqlite-file.ts'
import { openSqliteStore, type SqliteStore } from './store/sqlite/sqlite-store.ts'
import { usageBoard } from './usage/usage-board.ts'

const pidFileName = 'controller.pid'
const storeDeadlineMs = 5_000

export type BrokerControllerNeeds = {
  readonly configuration: ControllerConfiguration
  readonly flags: Flags
  readonly log: Log
  /** Told that we are ready, and that we live; undefined where nobody wants to know. */
  readonly service: SystemdNotifier | undefined
}

/** Resolves when `signal` aborted and everything is closed; rejects with what made it impossible to go on. */
export async function runBrokerController(
  { configuration, flags, log, service }: BrokerControllerNeeds,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir } = flags
  const { listen } = configuration
  log.info('Controller starts', { version, dataDir, pid: process.pid })
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const closing: (() => Promise<void>)[] = []
  try {
    const store = await openStore(dataDir, log)
    await removeUnfinished(dataDir)
    closing.unshift(() => store.close())
    const pidFile = join(dataDir, pidFileName)
    await replaceFile(pidFile, `${process.pid}\n`, 0o644)
    closing.unshift(() => rm(pidFile, { force: true }))

    const machine = { hostname: hostname(), interfaces: networkInterfaces() }
    const names = serverNames(machine, { ...configuration, bindAddress: listen.bindAddress })
    const revocations = await openRevocationList({ store, clock, log })
    const own = await openOwnCertificates({
      ...configuration.certificates,
      dataDir,
      names: names.all,
      storeID: store.origin.id,
      kubeconfig: flags.kubeconfig,
      revokedBefore: revocations.before,
      clock,
      random: Math.random,
      log,
    })
    await ensureNamespaces(store)
    await ensurePriorityClasses(store)

    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    const stopMeter = meterEventLoop({ registry, clock, log })
    closing.unshift(async () => stopMeter())
    const needs = { store, kinds: builtInKinds, events: eventRecorder({ store, clock }), clock, log }
    const { origin } = store
    const checkpoints = await openCheckpointWindow(needs, origin, configuration.checkpoints)
    const host = listen.bindAddress ?? anyAddress(machine)

    const usage = usageBoard({ clock })
    const api = apiServer({
      ...needs,
      usage,
      registry,
      tls: own.tls(),
      host,
      port: listen.apiPort,
      version,
      commonNameOf: commonNameOfCSR,
      origin,
      checkpoints,
      revocations,
      isOurs: (der) => signerOf(der, own.authority().trusted) !== undefined,
      lapsedWindowMs: configuration.certificates.expiredWindowMs,
    })
    const opened = await opening('Kubernetes API', listen.apiPort, '--api-port', api.listen())
    closing.unshift(() => api.run(AbortSignal.abort()))

    const broker = await openMqttBroker({
      tls: own.tls(),
      clock,
      log,
      registry,
      revocations,
      authorities: {
        only: () => onlyAuthority(own.authority().trusted),
        of: (certificate) => issuerOf(certificate, own.authority().trusted),
      },
    })
    closing.unshift(() => broker.close())
    const outbox = nodeOutbox({
      ...needs,
      broker,
      epoch: randomUUID(),
      origin,
      checkpoints,
      trust: () => trustHash(own.authority().trusted),
      nodeMonitorGraceMs: configuration.nodeLifecycle.nodeMonitorGracePeriodMs,
      nodeLeaseLimitMs: configuration.nodeLifecycle.nodeLeaseDurationLimitMs,
    })
    const inbox = nodeInbox({ ...needs, usage, broker, podsOf: outbox.podsOf, registry })
    const mqttPort = await opening(
      'MQTT',
      listen.mqttPort,
      '--mqtt-port',
      broker.listen({ port: listen.mqttPort, host }, limitMessages(inbox, { clock, registry })),
    )

    const clusterInfo = () => {
      const { trusted, hash: caHash } = own.authority()
      return { server: `https://${names.advertised}:${opened.port}`, mqttPort, trusted, caHash }
    }
    const { caHash } = clusterInfo()
    const hashBefore = await ensureClusterInfo(needs, clusterInfo())
    if (hashBefore !== undefined && hashBefore !== caHash) {
      const remedy = `Restore ${join(dataDir, 'authority')} from a backup, or let every machine join again`
      log.warn('The fleet knows another authority', { known: hashBefore, caHash, remedy })
    }
    own.onChange(async () => {
      for (const server of [api, broker]) server.renew(own.tls())
      await ensureClusterInfo(needs, clusterInfo())
      outbox.announce()
    })
    revocations.onChange(() => {
      own.revoked().catch((error) => log.error('Kubeconfig not written', { error }))
    })
    const here = urlHost(listen.bindAddress ?? '127.0.0.1')
    const kubeconfig = await own.writeKubeconfig({
      server: clusterInfo().server,
      // An address that was not configured comes and goes with the network: the local one is then the safe choice.
      local: { server: `https://${here}:${opened.port}`, isCurrent: configuration.advertiseAddress === undefined },
    })
    log.info('Controller ready', {
      api: `https://${here}:${opened.port}`,
      mqtt: `mqtts://${here}:${mqttPort}`,
      kubeconfig,
      caHash,
    })

    const socket = adminSocket({
      path: adminSocketPath(dataDir),
      reload: own.reload,
      backup: () =>
        makeBackup({ dataDir, copyStore: store.copyTo, now: rfc3339(clock.wallMs()), version }, randomUUID()),
      log,
    })
    await socket.listen().catch((error) => log.warn('No backup can be made while this controller runs', { error }))

    const view = {
      ready: () => true,
      problems: () => silentStore(store),
      status: () => `Serves the Kubernetes API on port ${opened.port} and MQTT on port ${mqttPort}`,
    }
    const loops: readonly Loop[] = [
      ...(service === undefined ? [] : [notifierLoop(service, view, clock, log)]),
      { name: 'api', run: api.run },
      { name: 'admin-socket', run: socket.run },
      revocations,
      checkpoints,
      own,
      inbox,
      outbox,
      statsCaller({ usage, broker, clock }),
      ...controlLoops({ ...needs, random: Math.random, signer: own.signer, origin, checkpoints }, configuration),
    ]
    await runLoops(loops, signal, log)
  } finally {
    for (const close of closing) await close()
  }
}

/** Everything goes through the store: while it answers, and this process comes to ask it, the controller lives. */
async function silentStore(store: SqliteStore): Promise<readonly string[]> {
  const answer = store.get('namespaces', { namespace: '', name: 'default' }).then(
    () => [],
    (error: unknown) => [`the store fails: ${storyOf(error)}`],
  )
  return withinOr(storeDeadlineMs, ['the store does not answer'], answer)
}

/** The open store is also the lock on the data directory. */
async function openStore(dataDir: string, log: Log): Promise<SqliteStore> {
  const path = join(dataDir, storeFileName)
  // Beside an authority that is there already there was a store once: its nodes know more than this one.
  const learnsIfNew = await isThere(join(dataDir, authorityFolderName, 'ca.key'))
  const unfinished = await unfinishedRestore(dataDir)
  if (unfinished !== undefined) throw new Error(unfinished)
  try {
    return await openSqliteStore({ path, clock, log, learnsIfNew })
  } catch (cause) {
    if (!(cause instanceof StoreInUseError)) throw cause
    const pid = await readFile(join(dataDir, pidFileName), 'utf8').catch(() => 'unknown')
    throw new Error(`Another controller (pid ${pid.trim()}) uses ${dataDir}`, { cause })
  }
}

/** A port that cannot be had is told with the flag that chooses another. */
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
