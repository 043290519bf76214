import { test } from 'tap'
import { failureOf } from './call.ts'
import { plainText, shortened } from './refusal-text.ts'

const runc =
  'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process:'

test('a refusal is shown without the engine’s inner workings, and with what to do', async (t) => {
  t.equal(
    plainText(`${runc} exec: "/no/such": stat /no/such: no such file or directory: unknown`),
    'exec: "/no/such": stat /no/such: no such file or directory (command: the image has no such program (or not the interpreter or libraries it needs))',
  )
  t.match(
    plainText(
      `${runc} error during container init: error mounting "/v" to rootfs at "/data/sub": mkdir /var/lib/docker/overlay2/aa25/merged/data/sub: read-only file system: unknown`,
    ),
    /^error mounting "\/v" to rootfs at "\/data\/sub": mkdir \/data\/sub: read-only file system \(volumeMounts/,
  )
  const port = (id: string) =>
    plainText(
      `driver failed programming external connectivity on endpoint k8s_POD_a_b_c_0 (${id}): Error starting userland proxy: listen tcp4 0.0.0.0:80: bind: address already in use`,
    )
  t.match(port('74a2'), /^listen tcp4 0\.0\.0\.0:80: bind: address already in use \(ports\[\]\.hostPort: /)
  t.equal(port('74a2'), port('99ff'), 'the same each time')
})

test('an unknown refusal is shown as it is', async (t) => {
  t.equal(plainText('layers from manifest do not match'), 'layers from manifest do not match')
})

test('a pod that names a program with a hundred thousand letters blocks nothing, and fills no message', async (t) => {
  for (const word of ['/', '/overlay2/', '/overlay2/merged', 'a']) {
    const name = word.repeat(130_000 / word.length)
    const { text } = failureOf({ statusCode: 400, json: { message: `exec: "${name}": file name too long: unknown` } })
    const shown = plainText(text)
    t.ok(shown.length < 3_000, word)
    t.match(shown, /^exec: ".*: file name too long$/, word)
  }
})

test('the prefixes of every version of runc and containerd are removed', async (t) => {
  for (const prefix of [
    'failed to create task for container: ',
    'failed to create shim task: ',
    'container_linux.go:380: ',
    'starting container process caused: ',
    'starting container process caused "exec": ',
  ]) {
    t.equal(plainText(`${prefix}no such thing: unknown`), 'no such thing', prefix)
  }
})

test('of a path inside an image the part of the image is kept, other paths stay', async (t) => {
  t.equal(plainText('open /var/lib/docker/overlay2/aa/merged/etc/x failed'), 'open /etc/x failed')
  t.equal(plainText('open /var/lib/docker/overlay2/aa/merged: failed'), 'open : failed')
  t.equal(plainText('open /snapshots/7/fs/etc/x failed'), 'open /etc/x failed')
  t.equal(plainText('open /merged/overlay2/aa/rootfs/etc/merged/x failed'), 'open /etc/merged/x failed')
  t.equal(plainText('open /srv/merged/x failed'), 'open /srv/merged/x failed')
  t.equal(plainText('open /var/lib/docker/overlay2/aa/x failed'), 'open /var/lib/docker/overlay2/aa/x failed')
  t.equal(plainText('open /overlay2/aa/unmerged/x failed'), 'open /overlay2/aa/unmerged/x failed')
})

test('a text of up to 2048 characters is kept, of a longer one both ends', async (t) => {
  const text = `${'a'.repeat(1_536)}${'b'.repeat(512)}`
  t.equal(shortened(text), text)
  t.equal(shortened(`${'a'.repeat(1_536)}x${'b'.repeat(512)}`), `${'a'.repeat(1_536)} … ${'b'.repeat(512)}`)
})
