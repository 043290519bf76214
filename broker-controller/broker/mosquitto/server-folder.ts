/** Loop: keeps a folder with the files of a Mosquitto current: access list, revocation lists, authorities and the server's certificate. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Authority } from '../../../certs/authority.ts'
import { readIfThere } from '../../../certs/files.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { codeOf, withCauses } from '../../../daemon/errors.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import {
  isIssuedCertificates,
  issuedCertificatesIn,
  type RecordedCertificate,
} from '../../store/certificates/issued-certificates.ts'
import { informer, keyText } from '../../store/informer.ts'
import { type Revocation, revocationsIn, revocationsKey } from '../../store/revocations.ts'
import type { Store } from '../../store/store.ts'
import { usersIn } from './access-list.ts'
import { authorityLists, certificateHashes, listedByOthers } from './authority-lists.ts'
import { type NodeRights, nodeRights } from './node-rights.ts'
import { returningNodes } from './returning-nodes.ts'
import { mosquittoFiles } from './server-configuration.ts'
import { serverFiles } from './server-files.ts'
import { keptServerCertificate } from './server-identity.ts'

export type ServerFolderNeeds = {
  readonly store: Store
  readonly authority: () => Authority
  /** Calls the listener when the authority or what it trusts has changed. */
  readonly onAuthorityChange: (listener: () => void) => void
  /** Ends the connection that the server has of this node, before the name has rights again. Rejects where it cannot, with ECONNREFUSED where no server runs. */
  readonly displace: (node: string) => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

export type ServerFolderSettings = {
  readonly folder: string
  readonly port: number
  /** DNS names and addresses of the server. */
  readonly names: readonly string[]
  /** The user name of the controllers. */
  readonly controller: string
}

const onlyKey = 'files'
/** Machines that join together are in one change of the files. */
const gatherMs = 200
const displacedAtOnce = 8
const displaceAgainMs = 10_000
/** Certificates end, and that of the server is renewed. */
const checkMs = 3600_000

/** Writes nothing before all Nodes and certificates have been read: a node that is left out could do nothing. */
export function serverFolder(needs: ServerFolderNeeds, settings: ServerFolderSettings): Loop {
  const { store, authority, clock, log } = needs
  const queue = workQueue(clock)
  const changed = () => queue.addAfter(onlyKey, gatherMs)
  const issued = new Map<string, readonly RecordedCertificate[]>()
  let revocations: ReadonlyMap<string, Revocation> = new Map()
  const decideReturning = returningNodes()
  const warnings = rightsWarnings(log)

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined || previous === undefined) changed()
  })
  const maps = informer({ store, clock, log }, 'configmaps', (present, previous) => {
    const map = present ?? previous
    if (map === undefined) return
    const key = keyText(map.metadata)
    try {
      if (key === keyText(revocationsKey)) revocations = revocationsIn(present)
      else if (isIssuedCertificates(map)) issued.set(key, present === undefined ? [] : issuedCertificatesIn(present))
      else return
    } catch (error) {
      return log.error('List of revoked certificates cannot be decoded; the previous one stays in force', { error })
    }
    changed()
  })
  needs.onAuthorityChange(changed)

  const rights = (listed: ReadonlySet<string>): NodeRights =>
    nodeRights({
      nodes: [...nodes.all()].map(({ metadata }) => metadata.name),
      issued: [...issued.values()].flat(),
      revocations,
      trusted: new Set(certificateHashes(authority().trusted)),
      signer: authority().hash,
      listed,
      nowMs: clock.wallMs(),
    })

  const reconcile = async () => {
    const { folder, port, names, controller } = settings
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const present = authority()
    const { nodes: allowed, withheld: kept, revoked } = rights(await listedByOthers(folder, present))
    const server = await keptServerCertificate(folder, present, names, clock.wallMs())
    const revocationLists = await authorityLists(folder, present, revoked, clock.wallMs())
    const before = usersIn((await readIfThere(join(folder, mosquittoFiles.accessList))) ?? '')
    const returning = decideReturning({ before, allowed, revocations, nowMs: clock.monotonicMs() })
    const connected = await displaceAll(returning.displace, needs.displace)
    const withRights = allowed.filter((node) => !returning.waiting.has(node) && !connected.has(node))
    const files = serverFiles({
      ...{ folder, port, controller, nodes: withRights, ...server },
      ...{ authorities: present.trusted, revocations: revocationLists },
    })
    const written: string[] = []
    for (const { name, content } of files) {
      const path = join(folder, name)
      if ((await readIfThere(path)) === content) continue
      await replaceFile(path, content)
      written.push(name)
    }
    if (written.length > 0)
      log.info('Files of the MQTT server written', { folder, files: written, nodes: withRights.length })
    warnings.withheld(kept)
    warnings.connected(connected)
    return { requeueAfterMs: Math.min(returning.waitMs ?? checkMs, connected.size > 0 ? displaceAgainMs : checkMs) }
  }
  const writing = async (signal: AbortSignal) => {
    await Promise.all([nodes.listed, maps.listed])
    queue.add(onlyKey)
    if (!signal.aborted) await runController({ name: 'mqtt-server-files', reconcile }, queue, log, signal)
  }
  return {
    name: 'mqtt-server-files',
    run: (signal) =>
      runLoops(
        [
          { name: 'mqtt-server-files-nodes', run: nodes.run },
          { name: 'mqtt-server-files-certificates', run: maps.run },
          { name: 'mqtt-server-files-writing', run: writing },
        ],
        signal,
        log,
      ),
  }
}

/** Logs which nodes have no rights, when that changes. */
function rightsWarnings(log: Log) {
  let [withheld, waiting] = ['', '']
  return {
    withheld(names: readonly string[]) {
      if (names.join() === withheld) return
      withheld = names.join()
      if (names.length === 0) return log.info('All nodes are allowed on the MQTT server again')
      log.warn(
        'Nodes have no rights on the MQTT server: an earlier certificate of their name was revoked, and is not in any revocation list',
        {
          nodes: names.slice(0, 10),
          count: names.length,
          remedy: 'Replace the authority: bramble-controller certificates rollover begin',
        },
      )
    },
    /** `failed`: why their connections could not be ended, by node. */
    connected(failed: ReadonlyMap<string, unknown>) {
      const names = [...failed.keys()]
      const [error] = failed.values()
      if (names.length > 0 && names.join() !== waiting) {
        log.warn('Nodes have no rights on the MQTT server yet: earlier connections of their names could not be ended', {
          nodes: names.slice(0, 10),
          count: names.length,
          retryInMs: displaceAgainMs,
          error,
        })
      }
      waiting = names.join()
    },
  }
}

/** Resolves with the nodes whose earlier connections may be there still, and why. */
async function displaceAll(
  nodes: readonly string[],
  displace: ServerFolderNeeds['displace'],
): Promise<ReadonlyMap<string, unknown>> {
  const failed = new Map<string, unknown>()
  await inParallel(nodes, displacedAtOnce, async (node) => {
    try {
      await displace(node)
    } catch (error) {
      if (!isStopped(error)) failed.set(node, error)
    }
  })
  return failed
}

/** Nothing listens at the port: a server that is stopped has no connections, and may wait for its first files. */
function isStopped(error: unknown): boolean {
  return withCauses(error).some((one) => codeOf(one) === 'ECONNREFUSED')
}
