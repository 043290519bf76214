/**
 * Header blocks of SPDY/3.1: names with their values, compressed by zlib with the dictionary of the protocol. One stream of
 * compression lasts as long as the connection (draft-mbelshe-httpbis-spdy-00, 2.6.10).
 */
import { constants, createDeflate, createInflate } from 'node:zlib'

export interface HeaderReader {
  /** Rejects for a block that is too long, or none. Call it for one block after the other. */
  read(block: Buffer): Promise<ReadonlyMap<string, string>>
  close(): void
}

/** Clients of Kubernetes send three headers. */
const longestBlock = 16 * 1024

export function headerReader(): HeaderReader {
  const inflate = createInflate({ dictionary: dictionary(), chunkSize: longestBlock })
  let pieces: Buffer[] = []
  let length = 0
  let fail: (error: Error) => void = () => undefined
  inflate.on('data', (piece: Buffer) => {
    pieces.push(piece)
    length += piece.length
    if (length <= longestBlock) return
    pieces = []
    inflate.destroy(new Error(`A header block is longer than ${longestBlock} bytes`))
  })
  inflate.on('error', (error) => fail(error))
  return {
    async read(block) {
      pieces = []
      length = 0
      await new Promise<void>((resolve, reject) => {
        fail = reject
        inflate.write(block, (error) => (error ? reject(error) : resolve()))
      })
      return headersIn(Buffer.concat(pieces))
    },
    close: () => void inflate.destroy(),
  }
}

export interface HeaderWriter {
  write(headers: ReadonlyMap<string, string>): Promise<Buffer>
  close(): void
}

export function headerWriter(): HeaderWriter {
  const deflate = createDeflate({ dictionary: dictionary(), flush: constants.Z_SYNC_FLUSH })
  let pieces: Buffer[] = []
  deflate.on('data', (piece: Buffer) => void pieces.push(piece))
  deflate.on('error', () => undefined) // its write rejects
  return {
    async write(headers) {
      pieces = []
      await new Promise<void>((resolve, reject) => {
        deflate.write(blockOf(headers), (error) => (error ? reject(error) : resolve()))
      })
      return Buffer.concat(pieces)
    },
    close: () => void deflate.destroy(),
  }
}

function headersIn(block: Buffer): ReadonlyMap<string, string> {
  let at = 0
  const number = () => {
    if (at + 4 > block.length) throw new Error('A header block ends early')
    at += 4
    return block.readUInt32BE(at - 4)
  }
  const text = () => {
    const length = number()
    if (at + length > block.length) throw new Error('A header block ends early')
    at += length
    return block.toString('latin1', at - length, at)
  }
  const headers = new Map<string, string>()
  for (let left = number(); left > 0; left--) headers.set(text().toLowerCase(), text())
  return headers
}

function blockOf(headers: ReadonlyMap<string, string>): Buffer {
  const texts = [...headers].flat().map((text) => sized(text))
  return Buffer.concat([numberBytes(headers.size), ...texts])
}

function sized(text: string): Buffer {
  return Buffer.concat([numberBytes(Buffer.byteLength(text)), Buffer.from(text)])
}

function numberBytes(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}

/** 1,423 bytes: words with their lengths, then text. */
function dictionary(): Buffer {
  const words = [
    ...dictionaryWords.split(' '),
    'status',
    '200 OK',
    'version',
    'HTTP/1.1',
    'url',
    'public',
    'set-cookie',
  ]
  return Buffer.concat([...[...words, 'keep-alive', 'origin'].map(sized), Buffer.from(dictionaryText)])
}

const dictionaryWords =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow ' +
  'authorization cache-control connection content-base content-encoding content-language content-length ' +
  'content-location content-md5 content-range content-type date etag expect expires from host if-match ' +
  'if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma ' +
  'proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade ' +
  'user-agent vary via warning www-authenticate method get'

const dictionaryText =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505' +
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized' +
  '403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable' +
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,' +
  'text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.'
