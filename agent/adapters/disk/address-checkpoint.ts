/** The addresses of nodes that are proven, in a file beside the checkpoint of the network. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { type Described, list, object, oneOf, optional, text } from '../../../api/schema.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { isMissing } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { checkedContent, withChecksum } from '../../../daemon/updates/checked-text.ts'
import type { PeerAddress, PeerAddresses, ProofCheckpoint, Unproven } from '../../network/probes/peer-addresses.ts'

const AddressesSchema = object({
  nodes: list(
    object({
      name: text,
      address: text,
      state: oneOf('proven', 'assumed', 'unproven'),
      mac: optional(text),
      /** Why it is not proven, and the node that answers there. */
      why: optional(oneOf('no answer', 'no certificate', 'other node')),
      node: optional(text),
    }),
  ),
})
type SavedAddress = Described<typeof AddressesSchema>['nodes'][number]

const fileName = 'addresses.json'

/** `folder`: of the network's checkpoint. A file that is damaged is logged and not used: the nodes are probed again. */
export function addressCheckpoint(folder: string, log: Log): ProofCheckpoint {
  const path = join(folder, fileName)
  return {
    async load() {
      try {
        return await readSavedAddresses(folder)
      } catch (error) {
        log.warn('The saved addresses of nodes cannot be used', { path, error })
        return new Map()
      }
    },
    async save(records) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const nodes = [...records].map(([name, { address, state, mac, because }]): SavedAddress => {
        return { name, address, state, ...(mac && { mac }), ...because }
      })
      await replaceFile(path, withChecksum({ nodes }), 0o600)
    },
  }
}

/** Only read, beside an agent that runs: empty if there is none. Rejects where the file is damaged or cannot be read. */
export async function readSavedAddresses(folder: string): Promise<PeerAddresses> {
  const content = await readFile(join(folder, fileName), 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (content === undefined) return new Map()
  const decoded = decode(AddressesSchema, JSON.parse(checkedContent(content)))
  if (!decoded.ok) throw new Error('The content is not valid')
  const usable = decoded.value.nodes.filter(
    ({ name, address }) => dnsSubdomainProblem(name) === undefined && ipVersion(address) === 4,
  )
  return new Map(usable.map((one) => [one.name, recordOf(one)]))
}

function recordOf({ address, state, mac, ...rest }: SavedAddress): PeerAddress {
  const because = state === 'unproven' ? becauseOf(rest) : undefined
  return {
    ...{ address, state, failures: 0, dueMs: state === 'unproven' ? 0 : Number.POSITIVE_INFINITY },
    ...(mac && { mac }),
    ...(because && { because }),
  }
}

function becauseOf({ why, node }: Pick<SavedAddress, 'why' | 'node'>): Unproven | undefined {
  if (why === 'other node') return node === undefined ? undefined : { why, node }
  return why && { why }
}
