/** Configuration → store → ports → controllers, running until the signal aborts. */
import { randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { peerControllerIdentity } from '../../api/identity.ts'
import { systemClock as clock, rfc3339 } from '../../daemon/clock.ts'
import { withinOr } from '../../daemon/deadline.ts'
import { removeUnfinished, replaceFile } from '../../daemon/durable-file.ts'
import { storyOf } from '../../daemon/log.ts'
import { version } from '../../daemon/process/version.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { notifierLoop } from '../../daemon/watchdog/systemd-notifier.ts'
import { liveKinds } from '../apiserver/kinds/custom/live-kinds.ts'
import { mqttServerFolder } from '../broker/mosquitto/installed-files.ts'
import { serverFolder } from '../broker/mosquitto/server-folder.ts'
import { displaceConnection } from '../broker/mqtt-client/displaced-connection.ts'
import { adminSocket, adminSocketPath, type LeaderStatus } from '../commands/connection/admin-socket.ts'
import { outwardAddresses } from '../configuration/server-names.ts'
import { makeBackup } from '../data-directory/backup.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { openStore, pidFileName } from '../data-directory/open-store.ts'
import { fleetBeginning } from '../replicas/fleet-beginning.ts'
import { followControllers } from '../replicas/follow-controllers.ts'
import { runningControllers } from '../replicas/running-controllers.ts'
import { settingsOfOthers } from '../replicas/settings-of-others.ts'
import { standbyLoop } from '../replicas/standby-loop.ts'
import type { Term } from '../store/election/election.ts'
import type { OpenedStore, Store } from '../store/store.ts'
import { builtInKinds } from './control-plane.ts'
import { withFleetPodNetwork } from './fleet-pod-network.ts'
import { openLeading, writeOwnKubeconfig } from './leading.ts'
import { type OpenApi, openApi } from './open-api.ts'
import { ownAddress } from './own-address.ts'
import { type BrokerControllerNeeds, type Closing, type ControllerParts, openParts } from './parts.ts'

const storeDeadlineMs = 5_000

/** Resolves when `signal` has aborted and everything is closed. Rejects with the error that ended the controller. */
export async function runBrokerController(given: BrokerControllerNeeds, signal: AbortSignal): Promise<void> {
  const { flags, log } = given
  const { dataDir } = flags
  log.info('Controller starts', { version, dataDir, pid: process.pid })
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const closings: (() => Promise<void>)[] = []
  try {
    const closing: Closing = { add: (close) => void closings.unshift(close) }
    const { etcd, storeLimits } = given.configuration
    const kinds = liveKinds(builtInKinds)
    const opening = openStore({
      ...{ dataDir, etcd, limits: storeLimits, resources: kinds, mayMigrate: !flags.keepStoreFormat },
      ...{ clock, log, signal },
    })
    const opened = await opening.catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
    if (opened === undefined) return
    await removeUnfinished(dataDir)
    closing.add(() => opened.store.close())
    const pidFile = join(dataDir, pidFileName)
    await replaceFile(pidFile, `${process.pid}\n`, 0o644)
    closing.add(() => rm(pidFile, { force: true }))
    const needs = { ...given, configuration: await withFleetPodNetwork(given, opened) }
    const parts = await openParts(needs, opened, kinds, closing)
    const api = await openApi(needs, parts, closing)
    const main = await mainLoops(needs, { ...parts, verifySecretsKey: opened.verifySecretsKey }, api, closing, signal)
    const socket = await openAdminSocket(needs, parts, opened)
    const loops = [...serviceLoops(needs, parts, main.status), ...sharedLoops(needs, parts, api), ...main.loops]
    await runLoops([...loops, { name: 'admin-socket', run: socket.run }], signal, log)
  } finally {
    for (const close of closings) await close()
  }
}

type MainLoops = { readonly loops: readonly Loop[]; readonly status: () => string }

/** What a controller does by itself: it leads at once, or, as one of several, when it has won an election. */
async function mainLoops(
  needs: BrokerControllerNeeds,
  parts: ControllerParts & Pick<OpenedStore, 'verifySecretsKey'>,
  api: OpenApi,
  closing: Closing,
  signal: AbortSignal,
): Promise<MainLoops> {
  const { replica } = parts
  if (replica === undefined) return openLeading(needs, parts, api, closing, { signal })
  const { server } = api
  const { election, controllers } = replica
  await replica.register({ apiServer: server, mqttServer: mqttServerOf(needs, parts) })
  followControllers(controllers, needs.log, async () => {
    await writeOwnKubeconfig(needs, parts, api)
    await parts.own.reload()
  })
  const facts = {
    api: server,
    kubeconfig: await writeOwnKubeconfig(needs, parts, api),
    caHash: parts.own.authority().hash,
  }
  const standing = standbyLoop({ election, leader: replica.leader, server, facts, clock, log: needs.log })
  let { status } = standing
  const lead = async (term: Term, signal: AbortSignal) => {
    const closings: (() => Promise<void>)[] = []
    try {
      const add = (close: () => Promise<void>) => void closings.unshift(close)
      const opening = openLeading(needs, parts, api, { add }, { term, signal })
      const leading = await opening.catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      if (leading === undefined) return
      status = leading.status
      await runLoops(leading.loops, signal, needs.log)
    } finally {
      replica.lead(false)
      for (const close of closings) await close()
      // A standby leads at once: nothing of this controller writes any more.
      await election.resign()
    }
  }
  const folder = join(needs.flags.dataDir, authorityFolderName)
  const loops = [
    fleetBeginning({ ...parts.shared, ...parts, controllers, folder }),
    { name: 'leader-election', run: (signal: AbortSignal) => standing.run(lead, signal) },
    { name: 'controllers', run: controllers.run },
  ]
  return { loops, status: () => status() }
}

/** '' until the port is known. */
function mqttServerOf({ configuration }: BrokerControllerNeeds, { names }: ControllerParts): string {
  const { externalBroker, listen } = configuration
  const { mqttPort } = listen
  if (externalBroker !== undefined) return externalBroker.url
  return mqttPort === 0 ? '' : `mqtts://${names.advertised}:${mqttPort}`
}

async function openAdminSocket(
  { configuration, file, flags, log }: BrokerControllerNeeds,
  { own, reloadTokenKeys, replica }: ControllerParts,
  { backUp, rotateSecretsKey }: Pick<OpenedStore, 'backUp' | 'rotateSecretsKey'>,
) {
  const { dataDir } = flags
  const backup = async () => {
    if (backUp === undefined)
      throw new Error(
        "The objects are in etcd: back them up with 'bramble-controller backup' of the version that runs, which reads them there",
      )
    return makeBackup({ dataDir, backUp, now: rfc3339(clock.wallMs()), version }, randomUUID())
  }
  const reload = async () => {
    await reloadTokenKeys()
    await own.reload()
  }
  const rotate = async () => {
    if (rotateSecretsKey === undefined) throw new Error('This store does not encrypt Secrets itself')
    const others = await runningControllers(replica?.servers().apiServers.slice(1) ?? [])
    if (others.length > 0) {
      throw new Error(
        `Other controllers run (${others.join(', ')}), and could not read Secrets: stop them first, and copy secrets.key to them afterwards`,
      )
    }
    return rotateSecretsKey()
  }
  const socket = adminSocket({
    path: adminSocketPath(dataDir),
    reload,
    backup,
    rotateSecretsKey: rotate,
    settings: () => JSON.stringify(settingsOfOthers(configuration, file)),
    leaderStatus: () => leaderStatus(replica),
    log,
  })
  await socket.listen().catch((error) => log.warn('No backup can be made while this controller runs', { error }))
  return socket
}

function leaderStatus(replica: ControllerParts['replica']): LeaderStatus {
  if (replica === undefined || replica.isLeading()) return { leads: true }
  const leader = replica.leader()
  return { leads: false, ...(leader !== undefined && { leader }) }
}

/** The loops of every controller, whether it leads or not. */
function sharedLoops(needs: BrokerControllerNeeds, parts: ControllerParts, { api, page }: OpenApi): readonly Loop[] {
  const { access, definitions, registered, revocations, own, guard, upkeep } = parts
  const address = ownAddress({
    advertised: parts.names.advertisedHost,
    addresses: () => outwardAddresses(networkInterfaces()).map(({ address }) => address),
    clock,
    log: needs.log,
  })
  const some = [guard, upkeep, page, address, mqttServerFiles(needs, parts)].filter((loop) => loop !== undefined)
  return [...some, { name: 'api', run: api.run }, access, definitions, registered.loop, revocations, own]
}

/** A standby writes them, too: the server may be on its machine. */
function mqttServerFiles(
  { configuration: { externalBroker }, flags }: BrokerControllerNeeds,
  { shared, own, names }: ControllerParts,
): Loop | undefined {
  if (externalBroker === undefined) return undefined
  return serverFolder(
    {
      ...shared,
      authority: own.authority,
      onAuthorityChange: own.onChange,
      displace: (node) => displaceConnection(node, externalBroker, { authority: own.authority(), clock }),
    },
    {
      folder: mqttServerFolder(flags.dataDir),
      port: externalBroker.port,
      names: [...new Set([externalBroker.host, ...names.all])],
      controller: peerControllerIdentity.user,
    },
  )
}

function serviceLoops(
  { service, log }: BrokerControllerNeeds,
  { shared }: ControllerParts,
  status: () => string,
): readonly Loop[] {
  const view = { ready: () => true, problems: () => storeProblems(shared.store), status }
  return service === undefined ? [] : [notifierLoop(service, view, clock, log)]
}

/** Every part uses the store: the controller is healthy while the store answers, and while this process gets to ask it. */
async function storeProblems(store: Store): Promise<readonly string[]> {
  const answer = store.get('namespaces', { namespace: '', name: 'default' }).then(
    () => [],
    (error: unknown) => [`the store fails: ${storyOf(error)}`],
  )
  return withinOr(storeDeadlineMs, ['the store does not answer'], answer)
}
