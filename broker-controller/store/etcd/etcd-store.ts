/**
 * The store on etcd: all objects in memory, followed by a watch, and each write a transaction of etcd. What is answered is on the
 * disks of a majority of its members.
 */
import { ApiError } from '../../../api/api-error.ts'
import { builtInResources, type ResourceRegistry } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import { cachedStore } from '../cached-store.ts'
import { untilAnswered } from '../election/until-answered.ts'
import { openSecrets, type ProtectedSecrets, protectSecrets } from '../encryption/protected-secrets.ts'
import { objectCache } from '../object-cache.ts'
import type { StoreLimits } from '../room/store-limits.ts'
import { type OpenedStore, SecretsKeyError, StoreInUseError } from '../store.ts'
import { controllerRegistry } from './controller-registry.ts'
import type { EtcdClient } from './etcd-client.ts'
import { connectEtcd } from './etcd-connection.ts'
import { answerOf } from './etcd-error.ts'
import { etcdImage, readObjects } from './etcd-image.ts'
import { type EtcdKeys, etcdKeys } from './etcd-keys.ts'
import { alarmType, methods } from './etcd-messages.ts'
import { migrationMark, newOrigin, putOrigin, readOrigin, sharedOrigin } from './etcd-origin.ts'
import type { EtcdPlace } from './etcd-place.ts'
import { etcdSecrets } from './etcd-secrets.ts'
import { type EtcdValues, etcdValues } from './etcd-values.ts'
import { etcdWriter, visibleMs } from './etcd-writer.ts'
import type { Fence } from './fence.ts'
import { leaderElection } from './leader-election.ts'
import { type LeaseVersions, lateLeaseVersions, openLeaseVersions } from './lease-versions.ts'
import { ownerHasEnded, ownProcess } from './owner-process.ts'
import { acquireStore, ownedBy, type StoreOwner } from './store-owner.ts'
import { storedLeases } from './stored-leases.ts'
import { etcdUpkeep } from './upkeep/etcd-upkeep.ts'

export type EtcdStoreNeeds = EtcdPlace & {
  /** The kinds it stores; undefined: the built-in ones. */
  readonly resources?: ResourceRegistry
  readonly clock: Clock
  readonly log: Log
  /** See `EtcdClientNeeds`. */
  readonly deadlineMs?: number | undefined
  /** Ends the wait for etcd and for a previous owner: opening rejects. */
  readonly signal?: AbortSignal | undefined
  /** Changes of the last minutes that are kept for watches, for each kind: at least this many, at most twice as many. */
  readonly historyLength?: number
  /** A new store begins without the objects of a running fleet: its origin accepts checkpoints. */
  readonly acceptsCheckpointsIfNew?: boolean
  readonly limits?: StoreLimits | undefined
  /** The keys that encrypt Secrets; made where there is none. undefined: Secrets are stored as they are. */
  readonly secretsKeyFile?: string
  /** Who decides which process may write; undefined: the key of the owner, with this process. */
  readonly ownership?: (client: EtcdClient, keys: EtcdKeys) => Promise<StoreOwner>
  /** undefined: a connection to `servers`. */
  readonly connect?: () => Promise<EtcdClient>
}

/** Throws StoreInUseError, SecretsKeyError, or another error with a remedy where etcd cannot be used. */
export async function openEtcdStore(needs: EtcdStoreNeeds): Promise<OpenedStore> {
  const { clock, log, signal } = needs
  return connected(needs, async (client, keys) => {
    const acquiring = { client, keys, self: ownProcess(), hasEnded: ownerHasEnded, clock, log, signal }
    const owner = await (needs.ownership?.(client, keys) ?? acquireStore(acquiring))
    try {
      return await openOwned(needs, client, keys, owner)
    } catch (error) {
      await owner.release()
      throw error
    }
  })
}

/**
 * For one of several controllers: reads at once, and writes when it has won an election. Throws SecretsKeyError, or another error with
 * a remedy where etcd cannot be used.
 */
export async function openSharedEtcdStore(needs: EtcdStoreNeeds): Promise<OpenedStore> {
  return connected(needs, (client, keys) => openShared(needs, client, keys))
}

async function connected(
  needs: EtcdStoreNeeds,
  open: (client: EtcdClient, keys: EtcdKeys) => Promise<OpenedStore>,
): Promise<OpenedStore> {
  const { servers, prefix } = needs
  let client: EtcdClient | undefined
  try {
    client = await (needs.connect?.() ?? connectEtcd(needs, needs))
    return await open(client, etcdKeys(prefix))
  } catch (cause) {
    client?.close()
    if (cause instanceof StoreInUseError || cause instanceof SecretsKeyError) throw cause
    throw new Error(`Cannot open the store ${prefix} in etcd at ${servers.join(', ')}`, { cause })
  }
}

async function openOwned(
  needs: EtcdStoreNeeds,
  client: EtcdClient,
  keys: EtcdKeys,
  owner: StoreOwner,
): Promise<OpenedStore> {
  const { prefix, clock, log, secretsKeyFile: keyFile } = needs
  await refuseMarked(client, keys)
  const origin =
    (await readOrigin(client, keys)) ??
    (await putOrigin(
      client,
      keys,
      ownedBy(owner, prefix),
      newOrigin(needs.acceptsCheckpointsIfNew ?? false, clock.wallMs()),
    ))
  const values = etcdValues()
  let secrets: ProtectedSecrets | undefined
  if (keyFile !== undefined) {
    const rows = etcdSecrets({ client, keys, values, fence: owner })
    secrets = await protectSecrets({ rows, path: `${prefix} of etcd`, keyFile, log })
  }
  const leaseVersions = await openLeaseVersions({ client, keys, fence: owner, clock, log })
  const { store } = await openImage(needs, { client, keys, values, leaseVersions, fence: owner, end: owner.release })
  return {
    store,
    origin,
    ...(secrets !== undefined && { rotateSecretsKey: secrets.rotateKey }),
    guard: { name: 'store-owner', run: owner.run },
    problems: () => problemsOf(client, keys),
    upkeep: etcdUpkeep({ ...needs, client, keys }),
  }
}

async function openShared(needs: EtcdStoreNeeds, client: EtcdClient, keys: EtcdKeys): Promise<OpenedStore> {
  const { prefix, clock, log, secretsKeyFile: keyFile, signal } = needs
  await refuseMarked(client, keys)
  const begun = newOrigin(needs.acceptsCheckpointsIfNew ?? false, clock.wallMs())
  const origin = await sharedOrigin(client, keys, begun, clock, signal)
  const values = etcdValues()
  const election = leaderElection({ client, keys, self: ownProcess(), hasEnded: ownerHasEnded, clock, log })
  const protecting = keyFile !== undefined && {
    rows: etcdSecrets({ client, keys, values, fence: election }),
    ...{ path: `${prefix} of etcd`, keyFile, log },
  }
  let secrets = protecting ? await openSecrets(protecting) : undefined
  const leaseVersions = lateLeaseVersions()
  const parts = { client, keys, values, leaseVersions, fence: election, end: election.resign }
  const { store, image, leases } = await openImage(needs, parts)
  const campaign = async (server: string, signal: AbortSignal) => {
    const term = await election.campaign(server, signal)
    if (term === undefined) return undefined
    const begin = async () => {
      await refuseMarked(client, keys)
      // Another one may have begun with a key of its own at the same time, and may have been first.
      if (protecting) secrets = await protectSecrets(protecting)
      if (!(await image.until(() => image.revision() >= term.revision, visibleMs))) throw notArrived(prefix)
      await leaseVersions.open({ client, keys, fence: election, clock, log })
    }
    try {
      const beginning = { what: 'the term of this leader', keep: election.keep, clock, log, signal }
      await untilAnswered(beginning, () =>
        begin().catch((error: unknown) => {
          throw answerOf(error)
        }),
      )
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    }
    leases.begin()
    return term
  }
  return {
    store,
    origin,
    ...(secrets !== undefined && {
      rotateSecretsKey: async () => {
        if (!election.isLeading() || secrets === undefined)
          throw new Error('Only the controller that leads can do this')
        return secrets.rotateKey()
      },
      verifySecretsKey: async () => {
        await secrets?.verify().catch((error: unknown) => {
          throw answerOf(error)
        })
      },
    }),
    problems: () => problemsOf(client, keys),
    upkeep: etcdUpkeep({ ...needs, client, keys }),
    election: { ...election, campaign },
    freshness: {
      latest: () => image.latest(visibleMs),
      until: (version) => image.until(() => image.revision() >= version, visibleMs),
    },
    controllers: controllerRegistry({ client, keys, clock, log }),
  }
}

type ImageParts = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly values: EtcdValues
  readonly leaseVersions: LeaseVersions
  readonly fence: Fence
  /** Before the connection is closed. */
  readonly end: () => Promise<void>
}

/** All objects in memory, and what writes them. */
async function openImage(
  { clock, log, historyLength, limits, resources = builtInResources }: EtcdStoreNeeds,
  { client, keys, values, leaseVersions, fence, end }: ImageParts,
) {
  const reading = { client, keys, values, resources, clock, log }
  const { revision, objects } = await readObjects(reading)
  const cache = objectCache({
    resources,
    clock,
    startVersion: (id) => (id === 'leases' ? leaseVersions.last() : revision),
    latestVersion: (id) => (id === 'leases' ? leaseVersions.last() : image.revision()),
    ...(historyLength !== undefined && { historyLength }),
  })
  const leases = storedLeases(cache, leaseVersions)
  for (const [resource, found] of objects) {
    if (resource === 'leases') leases.replace(found)
    else for (const object of found) cache.load(resource, object, JSON.stringify(object).length)
  }
  leases.begin()
  const image = etcdImage({ ...reading, cache, leases, revision })
  const writer = etcdWriter({
    ...{ client, keys, values, resources, cache, image, leaseVersions, fence, clock },
    async close() {
      image.close()
      await end()
      client.close()
    },
  })
  const { random } = clock
  return {
    store: cachedStore({ resources, cache, writer, clock, limits, ...(random !== undefined && { random }) }),
    ...{ image, leases },
  }
}

function notArrived(prefix: string): ApiError {
  return new ApiError('ServiceUnavailable', `The changes of ${prefix} in etcd do not arrive here`)
}

async function refuseMarked(client: EtcdClient, keys: EtcdKeys): Promise<void> {
  const mark = await migrationMark(client, keys)
  if (mark !== undefined) throw new Error(mark.message)
}

/** Alarms, and whether writes would be answered. */
async function problemsOf(client: EtcdClient, { owner }: EtcdKeys): Promise<readonly string[]> {
  try {
    // A linearizable read needs a majority, as a write does.
    await client.call(methods.range, { key: owner, limit: 1, keysOnly: true })
    const { alarms } = await client.call(methods.alarms, {})
    return alarms.map(({ member, alarm }) => {
      const id = BigInt.asUintN(64, BigInt(member)).toString(16)
      if (alarm !== alarmType.noSpace) return `alarm ${alarm === alarmType.corrupt ? 'CORRUPT' : alarm} on member ${id}`
      return `alarm NOSPACE on member ${id}: etcd has reached its quota and refuses writes. Compact and defragment it, then disarm the alarm`
    })
  } catch (error) {
    return [storyOf(error)]
  }
}
