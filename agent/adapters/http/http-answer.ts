/**
 * Parses an HTTP/1.x response as it arrives: as much as a probe needs, with bounded size. What Go's client takes is taken (net/http,
 * ReadResponse; net/textproto, ReadMIMEHeader), as pods that the kubelet finds ready must be ready here.
 */

export type HttpAnswer = {
  readonly status: number
  readonly location: string | undefined
  /**
   * The first 10 KiB, as in the kubelet (pkg/probe/http/http.go, maxRespBodyLength), to be read before the next bytes are added. Not
   * decoded: probes do not use the text.
   */
  readonly body: Buffer
}

export interface HttpAnswerReader {
  /** Adds bytes, which may be overwritten after the call; returns the response once enough has arrived. Throws when it is not HTTP. */
  push(chunk: Buffer): HttpAnswer | undefined
  /** The peer has closed the connection; throws when the response is incomplete. */
  end(): HttpAnswer
}

const mostBodyBytes = 10 * 1024
/** The same as Node.js' limit for the headers of a message. */
const mostHeadBytes = 16 * 1024
/** Chunks of one byte add five bytes each; anything longer consists of chunk extensions. */
const mostChunkedBytes = 6 * mostBodyBytes + mostHeadBytes

type Head = {
  readonly status: number
  readonly location: string | undefined
  /** Infinity: until the peer closes the connection. */
  readonly length: number
  readonly isChunked: boolean
  /** The offset of the body. */
  readonly bodyAt: number
}

const none = Buffer.alloc(0)

export function httpAnswerReader(): HttpAnswerReader {
  let received: Buffer = none
  let head: Head | undefined
  const chunks = chunkReader()

  const answer = ({ status, location }: Head, body: Buffer): HttpAnswer => ({
    status,
    location,
    body: body.subarray(0, mostBodyBytes),
  })

  const readHead = (): Head | undefined => {
    for (;;) {
      const next = headOf(received)
      if (next === undefined) {
        if (received.length > mostHeadBytes) throw new Error('malformed HTTP response: its headers are too long')
        return undefined
      }
      received = received.subarray(next.bodyAt)
      // Informational responses such as 100 Continue precede the response (RFC 9110, 15.2).
      if (next.status >= 200) return next
    }
  }

  const readOn = (): HttpAnswer | undefined => {
    head ??= readHead()
    if (head === undefined) return undefined
    if (!head.isChunked) {
      return received.length >= Math.min(head.length, mostBodyBytes) ? answer(head, received) : undefined
    }
    const body = chunks.read(received)
    if (body !== undefined) return answer(head, body)
    if (received.length > mostChunkedBytes) throw new Error('malformed chunked encoding: too many bytes without data')
    return undefined
  }

  return {
    push(chunk) {
      const isOwn = received.length > 0
      received = isOwn ? Buffer.concat([received, chunk]) : chunk
      const done = readOn()
      if (done === undefined && !isOwn) received = Buffer.from(received)
      return done
    },
    end() {
      if (head === undefined) throw new Error(received.length === 0 ? 'EOF' : 'unexpected EOF')
      if (head.isChunked || head.length !== Number.POSITIVE_INFINITY) throw new Error('unexpected EOF')
      return answer(head, received)
    },
  }
}

/** Undefined until the headers are complete. Lines end with CRLF, or with LF alone. */
function headOf(bytes: Buffer): Head | undefined {
  const ends = [bytes.indexOf('\n\n'), bytes.indexOf('\n\r\n')].filter((at) => at >= 0)
  if (ends.length === 0) {
    // A server of another protocol may never send an empty line.
    if (bytes.length >= 5 && bytes.toString('latin1', 0, 5) !== 'HTTP/') throw malformed(bytes)
    return undefined
  }
  const end = Math.min(...ends)
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\n').map(withoutCR)
  const [, major, minor, code] = /^HTTP\/(\d)\.(\d) +([1-9]\d\d)(?: |$)/.exec(first) ?? []
  const headers = headersIn(lines)
  if (code === undefined || headers === undefined) throw malformed(bytes)
  const status = Number(code)
  const codings = Number(`${major}${minor}`) < 11 ? undefined : headers.get('transfer-encoding')?.at(-1)
  const isChunked = /\bchunked\s*$/i.test(codings ?? '')
  const written = contentLength(headers)
  if (Number.isNaN(written)) throw malformed(bytes)
  const isEmpty = status === 204 || status === 304
  const length = isEmpty ? 0 : written
  const bodyAt = end + (bytes[end + 1] === 0x0d ? 3 : 2)
  return { status, location: headers.get('location')?.[0], length, isChunked: isChunked && !isEmpty, bodyAt }
}

/** Infinity: it is not given. NaN: it is not one number. */
function contentLength(headers: ReadonlyMap<string, readonly string[]>): number {
  const lengths = new Set(headers.get('content-length'))
  const [written] = lengths
  if (written === undefined) return Number.POSITIVE_INFINITY
  return lengths.size === 1 && /^\d+$/.test(written) ? Number(written) : Number.NaN
}

function withoutCR(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}

/** Values by name in lower case, in their order. undefined: one of the lines is not a header. */
function headersIn(lines: readonly string[]): ReadonlyMap<string, readonly string[]> | undefined {
  const headers = new Map<string, string[]>()
  let values: string[] | undefined
  for (const line of lines) {
    if (/^[ \t]/.test(line)) {
      if (values === undefined) return undefined
      values.push(`${values.pop()} ${line.trim()}`.trim())
      continue
    }
    const [, name, value] = headerLine.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    values = headers.get(name.toLowerCase()) ?? []
    headers.set(name.toLowerCase(), values)
    values.push(value.trim())
  }
  return headers
}

/** The name is a token of RFC 9110, 5.6.2, in which Go also takes blanks. */
const headerLine = /^([-!#$%&'*+.^_`|~0-9A-Za-z ]*):([\t\x20-\x7e\x80-\xff]*)$/

function malformed(bytes: Buffer): Error {
  const start = JSON.stringify(bytes.toString('latin1', 0, Math.min(bytes.length, 32)))
  return new Error(`malformed HTTP response ${start}`)
}

/** undefined: it has not arrived. */
function chunkLine(bytes: Buffer, at: number): { readonly size: number; readonly dataAt: number } | undefined {
  const end = bytes.indexOf('\r\n', at)
  if (end < 0) {
    if (bytes.length - at > mostHeadBytes) throw new Error('malformed chunked encoding')
    return undefined
  }
  const match = /^([0-9a-fA-F]{1,16})(?:[ \t]*;.*|[ \t]*)$/.exec(bytes.toString('latin1', at, end))
  if (match === null) throw new Error('malformed chunked encoding')
  return { size: Number.parseInt(match[1] ?? '', 16), dataAt: end + 2 }
}

interface ChunkReader {
  /**
   * `bytes`: the body so far. Each chunk is parsed once, however it is split on arrival. Undefined until the body is complete, or
   * as long as a probe reads it.
   */
  read(bytes: Buffer): Buffer | undefined
}

/** RFC 9112, 7.1. Its lines end with CRLF only, as Go demands since 1.24.2 (CVE-2025-22871). */
function chunkReader(): ChunkReader {
  const whole: Buffer[] = []
  let at = 0
  let wholeBytes = 0
  /** A chunk of which a part has arrived may be enough. */
  const withPart = (data: Buffer) =>
    wholeBytes + data.length >= mostBodyBytes ? Buffer.concat([...whole, data]) : undefined
  return {
    read(bytes) {
      while (wholeBytes < mostBodyBytes) {
        const line = chunkLine(bytes, at)
        if (line === undefined) return undefined
        const { size, dataAt } = line
        if (size === 0) break
        const data = bytes.subarray(dataAt, dataAt + size)
        const next = dataAt + size + 2
        if (next > bytes.length) return withPart(data)
        if (bytes.toString('latin1', next - 2, next) !== '\r\n') throw new Error('malformed chunked encoding')
        // A copy: the bytes are part of a buffer that each push replaces.
        whole.push(Buffer.from(data))
        wholeBytes += size
        at = next
      }
      return Buffer.concat(whole)
    },
  }
}
