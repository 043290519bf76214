/** The checkpoint of the fleet's network: a file for each of its messages, with a checksum, in one folder. */
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Decoded, decode } from '../../../api/decode.ts'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { type ServiceState, type ServicesMessage, serviceShards } from '../../../api/network/service-endpoints.ts'
import { problemText } from '../../../api/problem.ts'
import { removeUnfinished, replaceFile } from '../../../daemon/durable-file.ts'
import { isMissing } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { checkedContent, withChecksum } from '../../../daemon/updates/checked-text.ts'
import type { SavedObstacle } from '../../network/gate/network-gate.ts'
import { type NetworkObstacle, NetworkObstacleSchema, unreadableObstacle } from '../../network/gate/network-obstacle.ts'
import type { NetworkCheckpoint } from '../../network/messages/network-reception.ts'
import { decodeNetwork, type Received } from '../../network/messages/received-network.ts'
import { decodeServices } from '../../network/messages/received-services.ts'

export function networkCheckpointPath(dataDir: string): string {
  return join(dataDir, 'network')
}

/** A file that is damaged is logged and not used: the controller publishes its message again. */
export function networkCheckpoint(folder: string, log: Log): NetworkCheckpoint {
  const fileOf = (part: number | 'network') =>
    join(folder, part === 'network' ? 'network.json' : `services-${part}.json`)

  const take = async <T>(path: string, decoding: (input: unknown) => Decoded<Received<T>>): Promise<T | undefined> => {
    try {
      const decoded = decoding(JSON.parse(checkedContent(await readFile(path, 'utf8'))))
      if (decoded.ok) return decoded.value.message
      throw new Error(`The content is not valid: ${decoded.problems.slice(0, 3).map(problemText).join(', ')}`)
    } catch (error) {
      if (!isMissing(error)) log.warn('A file of the network’s checkpoint cannot be used', { path, error })
      return undefined
    }
  }

  const save = async (part: number | 'network', message: object) => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await replaceFile(fileOf(part), withChecksum(message), 0o600)
  }

  return {
    async load() {
      await removeUnfinished(folder)
      const network = await take(fileOf('network'), decodeNetwork)
      const shards = new Map<number, ServicesMessage>()
      for (let shard = 0; shard < serviceShards; shard++) {
        const message = await take(fileOf(shard), decodeServices)
        if (message !== undefined) shards.set(shard, message)
      }
      return { network, shards }
    },
    saveNetwork: (message) => save('network', message),
    saveShard: save,
    // The folder has the checkpoint of the policies, too.
    async clear() {
      for (const part of ['network', ...Array(serviceShards).keys()] as const) await rm(fileOf(part), { force: true })
    },
  }
}

const obstacleName = 'obstacle.json'

/** Why this node has no part in the network of the fleet: it stays so after a restart. */
export function obstacleFile(folder: string, log: Log): SavedObstacle {
  return {
    load: () =>
      readSavedObstacle(folder).catch((error: unknown) => {
        log.warn('The saved obstacle to the network of pods cannot be used', { error })
        return unreadableObstacle
      }),
    async save(obstacle) {
      if (obstacle === undefined) return rm(join(folder, obstacleName), { force: true })
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await replaceFile(join(folder, obstacleName), withChecksum(obstacle), 0o600)
    },
  }
}

/** As `readSavedNetwork`; rejects also where a later agent wrote a reason that this one does not have. */
export function readSavedObstacle(folder: string): Promise<NetworkObstacle | undefined> {
  return readSaved(join(folder, obstacleName), (input) => {
    const decoded = decode(NetworkObstacleSchema, input)
    if (!decoded.ok) throw new Error(`${obstacleName} is not valid: ${decoded.problems.map(problemText).join('; ')}`)
    return { ...decoded, value: { message: decoded.value, problems: [] } }
  })
}

/** Only read, beside an agent that runs: undefined if there is none. Rejects where the file is damaged or cannot be read. */
export function readSavedNetwork(folder: string): Promise<NetworkMessage | undefined> {
  return readSaved(join(folder, 'network.json'), decodeNetwork)
}

/** As `readSavedNetwork`: the Services of all shards. */
export async function readSavedServices(folder: string): Promise<readonly ServiceState[]> {
  const shards = Array.from({ length: serviceShards }, (_, shard) =>
    readSaved(join(folder, `services-${shard}.json`), decodeServices),
  )
  return (await Promise.all(shards)).flatMap((message) => message?.services ?? [])
}

async function readSaved<T>(path: string, decoding: (input: unknown) => Decoded<Received<T>>): Promise<T | undefined> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw new Error(`Cannot read ${path}`, { cause: error })
  })
  const decoded = text === undefined ? undefined : decoding(JSON.parse(checkedContent(text)))
  return decoded?.ok ? decoded.value.message : undefined
}
