/** `bramble.yaml` on a card's boot partition: how the machine joins by itself when it first boots. */
import { dnsSubdomainProblem } from '../../api/names.ts'
import { type Described, object, optional, text } from '../../api/schema.ts'
import { ConfigurationError, decodeConfiguration } from '../../daemon/process/configuration-file.ts'
import { type JoinTerms, joinTerms } from './terms.ts'

const FirstBootSchema = object({
  apiVersion: optional(text),
  kind: optional(text),
  /** The line that `token create --print-join-command` prints, in place of the next three. */
  join: optional(text),
  /** `https://HOST:6443` */
  controller: optional(text),
  token: optional(text),
  caHash: optional(text),
  /** This machine's hostname without it. */
  nodeName: optional(text),
})

export type FirstBoot = JoinTerms & { readonly nodeName: string | undefined }

/** Throws a ConfigurationError that names the field. */
export function readFirstBoot(source: string, path: string): FirstBoot {
  // Editors of other systems put a mark before the first letter.
  const file = decodeConfiguration(source.replace(/^\uFEFF/, ''), FirstBootSchema, path)
  const { join, nodeName } = file
  const problem = (field: string, message: string) =>
    new ConfigurationError(`${path} is not valid:`, [`${field}: ${message}`])
  const line = join === undefined ? undefined : readLine(join)
  const lineProblem = join === undefined ? undefined : problemOfLine(line, file)
  if (lineProblem !== undefined) throw problem('join', lineProblem)
  const { address, token, caHash } = line ?? { ...file, address: file.controller }
  if (address === undefined) throw problem('controller', 'is missing, and so is join: one of them must be there')
  const terms = joinTerms({ address, token, caHash })
  if ('field' in terms) {
    if (line !== undefined) throw problem('join', `${terms.field} ${terms.message}`)
    throw problem(terms.field === 'address' ? 'controller' : terms.field, terms.message)
  }
  const name = nodeName ?? line?.nodeName
  const nameProblem = name === undefined ? undefined : dnsSubdomainProblem(name.toLowerCase())
  if (nameProblem !== undefined) throw problem('nodeName', `${JSON.stringify(name)} ${nameProblem}`)
  return { ...terms, nodeName: name?.toLowerCase() }
}

function problemOfLine(
  line: ReturnType<typeof readLine>,
  { controller, token, caHash }: Described<typeof FirstBootSchema>,
): string | undefined {
  if (line === undefined) return "must be the line that 'bramble-controller token create --print-join-command' prints"
  const isGivenTwice = (controller ?? token ?? caHash) !== undefined
  return isGivenTwice ? 'give either the line, or controller, token and caHash' : undefined
}

/** `[sudo] bramble-agent join https://… --token … --ca-hash … [--node-name …]`; undefined: not such a command. */
function readLine(line: string) {
  const words = line.trim().split(/\s+/)
  const start = words.indexOf('join')
  const [address, ...rest] = words.slice(start + 1)
  if (start < 0 || address === undefined || !/bramble-agent$/.test(words[start - 1] ?? '')) return undefined
  const options = new Map<string, string>()
  for (let i = 0; i < rest.length; i += 2) {
    const [name, value] = [rest[i] ?? '', rest[i + 1]]
    if (name === '--no-run') i -= 1
    else if (!['--token', '--ca-hash', '--node-name'].includes(name) || value === undefined) return undefined
    else options.set(name, value)
  }
  return {
    address,
    token: options.get('--token'),
    caHash: options.get('--ca-hash'),
    nodeName: options.get('--node-name'),
  }
}
