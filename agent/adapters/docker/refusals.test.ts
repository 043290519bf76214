import { test } from 'tap'
import { failureOf } from './errors.ts'
import { plainly } from './refusals.ts'

const runc =
  'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process:'

test('a refusal is told without the engine’s inner workings, and with what to do', async (t) => {
  t.equal(
    plainly(`${runc} exec: "/no/such": stat /no/such: no such file or directory: unknown`),
    'exec: "/no/such": stat /no/such: no such file or directory (command: the image has no such program (or not the interpreter or libraries it needs))',
  )
  t.match(
    plainly(
      `${runc} error during container init: error mounting "/v" to rootfs at "/data/sub": mkdir /var/lib/docker/overlay2/aa25/merged/data/sub: read-only file system: unknown`,
    ),
    /^error mounting "\/v" to rootfs at "\/data\/sub": mkdir \/data\/sub: read-only file system \(volumeMounts/,
  )
  const port = (id: string) =>
    plainly(
      `driver failed programming external connectivity on endpoint k8s_POD_a_b_c_0 (${id}): Error starting userland proxy: listen tcp4 0.0.0.0:80: bind: address already in use`,
    )
  t.match(port('74a2'), /^listen tcp4 0\.0\.0\.0:80: bind: address already in use \(ports\[\]\.hostPort: /)
  t.equal(port('74a2'), port('99ff'), 'the same each time')
})

test('what is not known is told as it is', async (t) => {
  t.equal(plainly('layers from manifest do not match'), 'layers from manifest do not match')
})

test('a pod that names a program with a hundred thousand letters stops nobody, and fills no message', async (t) => {
  for (const word of ['/', '/overlay2/', '/overlay2/merged', 'a']) {
    const name = word.repeat(130_000 / word.length)
    const { text } = failureOf({ statusCode: 400, json: { message: `exec: "${name}": file name too long: unknown` } })
    const told = plainly(text)
    t.ok(told.length < 3_000, word)
    t.match(told, /^exec: ".*: file name too long$/, word)
  }
})
