import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Store } from '../../store/store.ts'
import { startApi } from '../../testing/api-under-test.ts'

const path = '/api/v1/namespaces/default/configmaps/large'

/** So many writes of so many bytes; each answer is as long as its request. */
const rounds = [
  { bytes: 20_000, times: 200 },
  { bytes: 200_000, times: 200 },
  { bytes: 1_000_000, times: 50 },
]

async function allArrive(t: Test, program: string, script: readonly string[]): Promise<void> {
  const store = pausingStore(memoryStore({ clock: systemClock }))
  const api = await startApi({ log: quietLog(t), over: { store } })
  t.teardown(api.stop)
  const metadata = { name: 'large', namespace: 'default' }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  const { certificate, key } = api.issueFor(administrator)
  const files = { ca: join(api.folder, 'ca.pem'), client: join(api.folder, 'client.pem') }
  await writeFile(files.ca, api.authority.certificate)
  await writeFile(files.client, `${certificate}\n${key}`, { mode: 0o600 })
  for (const { bytes, times } of rounds) {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data: { x: 'x'.repeat(bytes) } }
    const bodyFile = join(api.folder, `body-${bytes}`)
    await writeFile(bodyFile, JSON.stringify(body))
    const args = [...script, files.ca, files.client, String(api.port), path, bodyFile, String(times)]
    const { stdout } = await promisify(execFile)(program, args)
    t.strictSame(JSON.parse(stdout), { '200': times }, `${times} writes of ${bytes} bytes`)
  }
}

/**
 * Answers a write in the check phase of the event loop, as the store on disk does after its flush, and lets the client
 * read that answer and send its next request before the loop goes on: the end of a write that began in the check phase
 * is known one round later.
 */
function pausingStore(store: Store): Store {
  return {
    ...store,
    async update(resource, object) {
      const updated = await store.update(resource, object)
      await new Promise<void>((resolve) => {
        setImmediate(resolve)
        setImmediate(() => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3))
      })
      return updated
    },
  }
}

const nodeClient = `
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
const [ca, client, port, path, bodyFile, times] = process.argv.slice(1)
const [cert, body] = [readFileSync(client), readFileSync(bodyFile)]
const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: readFileSync(ca), cert, key: cert })
const headers = { 'content-type': 'application/json', 'content-length': body.length }
const put = () => new Promise((resolve) => {
  const put = request({ host: '127.0.0.1', port, path, method: 'PUT', agent, headers }, (answer) => {
    let length = 0
    answer.on('data', (piece) => { length += piece.length })
    answer.on('end', () => resolve(length > body.length ? String(answer.statusCode) : 'short'))
    answer.on('error', (error) => resolve(error.message))
  })
  put.on('error', (error) => resolve(error.message))
  put.end(body)
})
const results = {}
for (let turn = 0; turn < Number(times); turn++) {
  const result = await put()
  results[result] = (results[result] ?? 0) + 1
}
agent.destroy()
console.log(JSON.stringify(results))
`

/** Reads the object while it writes it, both on one session. */
const http2Client = `
import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'
const [ca, client, port, path, bodyFile, times] = process.argv.slice(1)
const [cert, body] = [readFileSync(client), readFileSync(bodyFile)]
const session = connect('https://127.0.0.1:' + port, { ca: readFileSync(ca), cert, key: cert })
const closed = new Promise((resolve) => session.on('error', (error) => resolve(error.message)).on('close', () => resolve('closed')))
const send = (method, body) => new Promise((resolve) => {
  const stream = session.request({ ':method': method, ':path': path, 'content-type': 'application/json' })
  let [status, length] = ['', 0]
  stream.on('response', (head) => { status = String(head[':status']) })
  stream.on('data', (piece) => { length += piece.length })
  stream.on('end', () => resolve({ status, length }))
  stream.on('error', (error) => resolve({ status: error.message, length }))
  stream.end(body)
})
const answer = async (method, body) => {
  const late = new Promise((resolve) => setTimeout(resolve, 20_000, { status: 'no answer', length: 0 }).unref())
  const lost = closed.then((status) => ({ status, length: 0 }))
  const sent = send(method, body).catch((error) => ({ status: error.message, length: 0 }))
  return await Promise.race([sent, lost, late])
}
const results = {}
const count = (result) => { results[result] = (results[result] ?? 0) + 1 }
const outcome = ({ status, length }) => status === '200' && length <= body.length ? 'short' : status
count(outcome(await answer('PUT', body)))
for (let turn = 1; turn < Number(times); turn++) {
  const [write, read] = (await Promise.all([answer('PUT', body), answer('GET')])).map(outcome)
  count(read === '200' ? write : 'read: ' + read)
}
session.close()
console.log(JSON.stringify(results))
process.exit()
`

const pythonClient = `
import collections, http.client, json, ssl, sys
ca, client, port, path, body_file, times = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.load_cert_chain(client)
connection = http.client.HTTPSConnection('127.0.0.1', int(port), context=context)
body = open(body_file, 'rb').read()
results = collections.Counter()
for turn in range(int(times)):
    try:
        connection.request('PUT', path, body, {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        results[str(answer.status) if len(answer.read()) > len(body) else 'short'] += 1
    except Exception as error:
        results[repr(error)] += 1
        connection.close()
print(json.dumps(results))
`

test('every large write on a kept connection of a Node.js client arrives', (t) =>
  allArrive(t, process.execPath, ['--input-type=module', '-e', nodeClient]))

test("every large write on a kept connection of Python's http.client arrives", (t) =>
  allArrive(t, 'python3', ['-c', pythonClient]))

test('every large write on a kept session of HTTP/2 arrives, among large answers', (t) =>
  allArrive(t, process.execPath, ['--input-type=module', '-e', http2Client]))
