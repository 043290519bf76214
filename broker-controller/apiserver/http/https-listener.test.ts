import { once } from 'node:events'
import { connect, TLSSocket } from 'node:tls'
import { type Test, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { issueServer } from '../../../certs/issue.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { httpsListener } from './https-listener.ts'

const host = '127.0.0.1'
const ownName = 'localhost'
const otherName = 'page.example'

/** Answers each request with the name in the certificate that it takes for its client's. */
async function aListener(t: Test) {
  const nowMs = Date.now()
  const authority = await openAuthority(testFolder(t), nowMs)
  const serverOf = (name: string) => issueServer(authority, { names: [name], nowMs })
  const listener = httpsListener(
    {
      tls: { ...serverOf(ownName), ca: authority.certificate, named: serverOf(otherName) },
      ...{ host, port: 0, times: undefined, clock: systemClock, log: quietLog(t) },
      http2: { serve: () => undefined, closeIdle: () => undefined, destroyAll: () => undefined },
    },
    ({ socket }, response) => {
      const { subject } = socket instanceof TLSSocket ? socket.getPeerCertificate() : {}
      response.setHeader('connection', 'close').end(`client: ${subject?.CN ?? 'anonymous'}`)
    },
  )
  const { port } = await listener.listen()
  t.teardown(listener.close)
  return { port, ca: authority.certificate, client: serverOf('ada') }
}

type Options = { readonly version: 'TLSv1.2' | 'TLSv1.3'; readonly session?: Buffer | undefined }

/** The answer, and the last session that the server gave. */
async function asked(t: Test, { version, ...more }: Options & { readonly [name: string]: unknown }) {
  const socket = connect({ host, ...more, minVersion: version, maxVersion: version })
  t.teardown(() => socket.destroy())
  let session: Buffer | undefined
  socket.on('session', (given: Buffer) => {
    session = given
  })
  await once(socket, 'secureConnect')
  const isReused = socket.isSessionReused()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  let text = ''
  for await (const part of socket) text += part
  return { client: /client: (\w+)/.exec(text)?.[1], session, isReused }
}

test('a client that copied the session of another one does not get its identity', async (t) => {
  const { port, ca, client } = await aListener(t)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    for (const servername of [ownName, otherName]) {
      const at = { port, ca, version, servername }
      const own = await asked(t, { ...at, cert: client.certificate, key: client.key })
      t.equal(own.client, 'ada')
      t.match(
        await asked(t, { ...at, session: own.session }),
        { isReused: false, client: 'anonymous' },
        `${version}, ${servername}`,
      )
    }
  }
})
