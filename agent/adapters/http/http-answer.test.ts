import { test } from 'tap'
import { type HttpAnswer, httpAnswerReader } from './http-answer.ts'

type Read = Omit<HttpAnswer, 'body'> & { readonly body: string }

/** The answer, however it is cut into pieces, with the other side closing at the end. */
function read(text: string, pieceBytes = text.length): Read {
  const answer = readBytes(text, pieceBytes)
  return { ...answer, body: answer.body.toString() }
}

function readBytes(text: string, pieceBytes: number): HttpAnswer {
  const reader = httpAnswerReader()
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const answer = reader.push(bytes.subarray(at, at + pieceBytes))
    if (answer !== undefined) return answer
  }
  return reader.end()
}

const inAnyPieces = (text: string) => [1, 2, 7, 4096].map((bytes) => read(text, bytes))

test('an answer is read to its length, its last chunk, or the end of the connection', (t) => {
  const counted = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell'
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nwe\r\n2\r\nll\r\n0\r\n\r\n'
  const closed = 'HTTP/1.0 200\r\nServer: busybox\r\n\r\nwell'
  for (const text of [counted, chunked, closed]) {
    for (const answer of inAnyPieces(text)) t.match(answer, { status: 200, body: 'well' })
  }
  const reader = httpAnswerReader()
  t.ok(reader.push(Buffer.from(counted)), 'without waiting for the end')
  t.end()
})

test('answers without a body, and those that come before the answer', (t) => {
  t.match(read('HTTP/1.1 204 No Content\r\n\r\n'), { status: 204, body: '' })
  const reader = httpAnswerReader()
  t.match(reader.push(Buffer.from('HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n')), { status: 304 })
  for (const answer of inAnyPieces('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLOCATION:  /here \r\n\r\n')) {
    t.match(answer, { status: 302, location: '/here' })
  }
  t.end()
})

test('bytes may be overwritten once they were added', (t) => {
  const one = Buffer.alloc(30)
  const reader = httpAnswerReader()
  const text = 'HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789'
  let answer: HttpAnswer | undefined
  for (let at = 0; at < text.length; at += 30) {
    answer = reader.push(one.subarray(0, one.write(text.slice(at, at + 30))))
  }
  t.equal(answer?.body.toString(), '0123456789'.repeat(4))
  t.end()
})

test('lines may end with LF alone, and what else Go takes is an answer', (t) => {
  for (const text of [
    'HTTP/1.0 200 OK\n\nok',
    'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
    'HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok',
    'HTTP/1.1 200 OK\nContent-Length: 2\n\r\nok',
    'HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 200\r\nA : b\r\n folded\r\n: none\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\r\nok\r\n0\r\n\r\n',
    'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nok',
  ]) {
    for (const answer of inAnyPieces(text)) t.match(answer, { status: 200, body: 'ok' }, text)
  }
  t.match(read('HTTP/1.1 302 Found\nLocation: /here\n\n'), { status: 302, location: '/here' })
  t.end()
})

test('of repeated headers the first one counts, and a value is not a header', (t) => {
  const head = 'HTTP/1.1 302\r\nX: location: /no\r\nLocation: /first\r\nlocation:/second \r\nContent-Length: 0'
  t.match(read(`${head}\r\n\r\n`), { status: 302, location: '/first' })
  t.match(read('HTTP/1.1 200\r\nX-Content-Length: 3\r\nContent-Length: 0\r\n\r\n'), { body: '' })
  t.end()
})

test('of a long body the first 10 KiB count', (t) => {
  const long = 'x'.repeat(50_000)
  t.equal(read(`HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n${long}`).body.length, 10_240)
  t.equal(read(`HTTP/1.1 200 OK\r\n\r\n${long}`, 1_000).body.length, 10_240)
  t.equal(read(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc350\r\n${long}`, 1_000).body.length, 10_240)
  t.end()
})

test('an invalid or truncated HTTP response is an error at once', (t) => {
  for (const text of [
    'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTP/2 200\r\n\r\n',
    'HTTP/1.1 2000 OK\r\n\r\n',
    'HTTP/1.1 099 OK\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno header\r\n\r\n',
    'HTTP/1.1 200 OK\n folded: first\n\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n\r\n',
    `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(20_000)}`,
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'y'.repeat(20_000)}`,
  ]) {
    t.throws(() => httpAnswerReader().push(Buffer.from(text)), { message: /malformed/ }, text.slice(0, 40))
  }
  for (const text of ['', 'HTTP/1.1 200', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwell']) {
    t.throws(() => read(text, 64), { message: /EOF/ }, text)
  }
  t.end()
})

test('a chunked answer of little data and long extensions is not collected without end', (t) => {
  const reader = httpAnswerReader()
  reader.push(Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'))
  const chunk = Buffer.from(`1;${'y'.repeat(8_000)}\r\nx\r\n`)
  const pushMany = () => {
    for (let i = 0; i < 1_000; i++) reader.push(chunk)
  }
  t.throws(pushMany, { message: /malformed chunked encoding/ })

  const tiny = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(20_000)}`
  t.equal(read(tiny, 1_000).body.length, 10_240, 'chunks of one byte are an answer')
  t.end()
})

test('a chunk is read once, however slowly the bytes after it arrive', (t) => {
  const reader = httpAnswerReader()
  reader.push(Buffer.from(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(10_000)}1;`))
  const before = process.cpuUsage()
  for (let i = 0; i < 10_000; i++) reader.push(Buffer.from('y'))
  const { user, system } = process.cpuUsage(before)
  t.ok(user + system < 5_000_000, `${(user + system) / 1000} ms of processor time`)
  t.match(reader.push(Buffer.from(`\r\nx\r\n0\r\n\r\n`)), { status: 200 })
  t.end()
})
