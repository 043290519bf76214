/** Loop: keeps a folder with the files of a Mosquitto current: access list, revocation lists, authorities and the server's certificate. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeIdentity } from '../../../api/identity.ts'
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
  let withheld = ''
  let waiting = ''

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

  const warnWithheld = (names: readonly string[]) => {
    if (names.join() === withheld) return
    withheld = names.join()
    if (names.length === 0) return log.info('No node is kept from the MQTT server any more')
    log.warn(
      'Nodes have no rights on the MQTT server: an earlier certificate of their name was revoked, and is in no revocation list',
      {
        nodes: names.slice(0, 10),
        count: names.length,
        remedy: 'Replace the authority: bramble-controller certificates rollover begin',
      },
    )
  }

  const warnConnected = (failed: ReadonlyMap<string, unknown>) => {
    const names = [...failed.keys()].join()
    if (names !== '' && names !== waiting) {
      const [error] = failed.values()
      const facts = { nodes: [...failed.keys()].slice(0, 10), count: failed.size, retryInMs: displaceAgainMs, error }
      log.warn('Nodes have no rights on the MQTT server yet: earlier connections of their names could not be ended', facts)
    }
    waiting = names
  }

  const reconcile = async () => {
    const { folder, port, names, controller } = settings
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const present = authority()
    const { nodes: allowed, withheld: kept, revoked } = rights(await listedByOthers(folder, present))
    const server = await keptServerCertificate(folder, present, names, clock.wallMs())
    const revocationLists = await authorityLists(folder, present, revoked, clock.wallMs())
    const connected = await displaceReturning(folder, allowed, revocations, needs.displace)
    const files = serverFiles({
      ...{ folder, port, controller, nodes: allowed.filter((node) => !connected.has(node)), ...server },
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
      log.info('Files of the MQTT server written', { folder, files: written, nodes: allowed.length - connected.size })
    warnWithheld(kept)
    warnConnected(connected)
    return { requeueAfterMs: connected.size > 0 ? displaceAgainMs : checkMs }
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

/**
 * Ends the connections of names that were revoked and get rights again. Such a connection stays open when its certificate is revoked,
 * and would have the rights of the machine that has the name now. Resolves with the nodes whose connection may be there still, by name.
 */
async function displaceReturning(
  folder: string,
  allowed: readonly string[],
  revocations: ReadonlyMap<string, Revocation>,
  displace: ServerFolderNeeds['displace'],
): Promise<ReadonlyMap<string, unknown>> {
  const before = usersIn((await readIfThere(join(folder, mosquittoFiles.accessList))) ?? '')
  const returning = allowed.filter((node) => {
    const { user } = nodeIdentity(node)
    return revocations.has(user) && !before.has(user)
  })
  const failed = new Map<string, unknown>()
  await inParallel(returning, displacedAtOnce, async (node) => {
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
