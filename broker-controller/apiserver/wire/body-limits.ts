/**
 * Limits the size and the nesting of bodies. What is parsed, decoded and validated without a pause holds up everything
 * else, and that work grows with the number of values in a body, not only with its bytes. The numbers are chosen with
 * `bench/budget.ts` so that no allowed body takes more than 100 ms.
 */
import { ApiError } from '../../../api/api-error.ts'
import { bootstrappersGroup, type Identity, lapsedNodesGroup, mastersGroup, nodesGroup } from '../../../api/identity.ts'

/** Fields and list items of one body, and of one object. A pod with its status has about 300, a node with fifty images 400. */
export const mostValues = 16_384
/**
 * Values of a JSON patch: 10,000 operations, as in Kubernetes, with four fields each. They are cheaper than fields of an
 * object.
 */
export const mostPatchValues = 50_000
/** Levels of objects and lists; the schemas have fewer than twenty. Kubernetes allows 10,000. */
const mostLevels = 100
/** The parser takes up to 3 ms for each kB. kubectl turns files into JSON itself. */
const mostYamlBytes = 16 * 1024
/** Body of a client that may only request a certificate; such a request has about 2 kB. */
const mostRequestBytes = 64 * 1024

/** Throws RequestEntityTooLarge where this identity may not send as much. */
export function refuseLongBody(body: Uint8Array, { groups }: Identity): void {
  const isApplicant = groups.includes(bootstrappersGroup) || groups.includes(lapsedNodesGroup)
  if (isApplicant && !groups.includes(mastersGroup)) refuseLonger(body, mostRequestBytes, 'the body of the request')
}

/** Throws UnsupportedMediaType for all but administrators, RequestEntityTooLarge where it is too long. */
export function refuseYaml(body: Uint8Array, { groups }: Identity): void {
  if (!groups.includes(mastersGroup)) {
    const message = `YAML bodies are accepted only from members of the group ${mastersGroup}: send JSON`
    throw new ApiError('UnsupportedMediaType', message)
  }
  refuseLongYaml(body)
}

/**
 * The same for the body of a server-side apply, whose form is YAML (KEP-555): UnsupportedMediaType for nodes and bootstrap tokens only.
 * They never apply YAML, and a stolen one would hold up the API with it.
 */
export function refuseYamlOfMachines(body: Uint8Array, { groups }: Identity): void {
  const isMachine = [nodesGroup, lapsedNodesGroup, bootstrappersGroup].some((group) => groups.includes(group))
  if (isMachine && !groups.includes(mastersGroup)) {
    const message = 'YAML bodies are not accepted from nodes and bootstrap tokens: send JSON'
    throw new ApiError('UnsupportedMediaType', message)
  }
  refuseLongYaml(body)
}

/** Throws RequestEntityTooLarge where the parser would take too long. */
function refuseLongYaml(body: Uint8Array): void {
  refuseLonger(body, mostYamlBytes, 'a YAML body, which may be sent as JSON instead,')
}

/** As refuseIntricateJson, of a value that is parsed. Objects that stand in several places count in each. */
export function refuseIntricateValue(value: unknown, most = mostValues): void {
  if (hasMoreValues(value, most)) throw tooManyValues(most)
}

/** As isIntricate, of a value that is parsed. */
export function hasMoreValues(value: unknown, most = mostValues): boolean {
  let values = 0
  const count = (inner: unknown, levels: number): void => {
    if (typeof inner !== 'object' || inner === null || values > most) return
    if (levels > mostLevels) throw tooManyLevels()
    const parts = Object.values(inner)
    values += parts.length
    for (const part of parts) count(part, levels + 1)
  }
  count(value, 1)
  return values > most
}

/** Throws RequestEntityTooLarge for too many values, BadRequest for too many levels. What is not JSON passes. */
export function refuseIntricateJson(body: Uint8Array, most = mostValues): void {
  if (isIntricate(body, most)) throw tooManyValues(most)
}

/** Whether this JSON has more than so many fields and items. Throws BadRequest for too many levels. */
export function isIntricate(json: Uint8Array, most = mostValues): boolean {
  let values = 0 // the first of each object or list with its bracket, the others with their comma
  let levels = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === quote) at = endOfText(json, at)
    else if (byte === comma) values++
    else if (byte === openBrace || byte === openBracket) {
      values++
      levels = oneDeeper(levels)
    } else if (byte === closeBrace || byte === closeBracket) levels--
    if (values > most) return true
  }
  return false
}

function tooManyLevels(): ApiError {
  return new ApiError('BadRequest', `the body of the request has more than ${mostLevels} levels`)
}

export function tooManyValues(most = mostValues): ApiError {
  return new ApiError('RequestEntityTooLarge', `the body of the request has more than ${most} fields and items`)
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Where the text that begins at `start` ends: at its closing quote, or behind the body. */
export function endOfText(body: Uint8Array, start: number): number {
  let at = start + 1
  while (at < body.length && body[at] !== quote) at += body[at] === backslash ? 2 : 1
  return at
}

function refuseLonger(body: Uint8Array, most: number, what: string): void {
  if (body.length <= most) return
  throw new ApiError('RequestEntityTooLarge', `Request entity too large: limit of ${what} is ${most} bytes`)
}

function oneDeeper(levels: number): number {
  if (levels >= mostLevels) throw tooManyLevels()
  return levels + 1
}
