import { test } from 'tap'
import { notifySettings } from './notify-settings.ts'

type File = NonNullable<Parameters<typeof notifySettings>[0]>

function read(file: File) {
  const problems: string[] = []
  return { settings: notifySettings(file, problems), problems }
}

const phone = { name: 'phone', type: 'ntfy', url: 'https://ntfy.sh/fleet' } as const

test('without the field nothing is sent', async (t) => {
  t.equal(notifySettings(undefined, []), undefined)
})

test('a channel and times are read', async (t) => {
  const { settings, problems } = read({ delay: '5m', groupWait: '10s', channels: [{ ...phone, namespaces: ['shop'] }] })
  t.same(problems, [])
  t.match(settings, {
    delayMs: 300_000,
    groupWaitMs: 10_000,
    resolveDelayMs: 600_000,
    channels: [{ name: 'phone', url: { value: 'https://ntfy.sh/fleet' }, selection: { namespaces: ['shop'] } }],
  })
})

test('every mistake is named by its path, and none shows the URL', async (t) => {
  const problemOf = (channel: Partial<File['channels'][number]>) =>
    read({ channels: [{ ...phone, ...channel }] }).problems.join()
  t.match(problemOf({ name: 'My Phone' }), /^notify\.channels\[0\]\.name: /)
  t.match(problemOf({ url: 'ftp://secret' }), /^notify\.channels\[0\]\.url: must begin with https:/)
  t.match(problemOf({ url: 'https://user:secret@host/' }), /must not have a password/)
  t.match(problemOf({ urlFile: '/etc/url' }), /name either url or urlFile/)
  t.match(problemOf({ tokenFile: 'token' }), /must be an absolute path/)
  t.match(
    problemOf({ url: 'http://host/secret', tokenFile: '/t' }),
    /must begin with https:\/\/ if there is a tokenFile/,
  )
  t.match(problemOf({ template: '{}' }), /only a webhook has one/)
  t.match(problemOf({ type: 'webhook', contentType: 'a\r\nb' }), /is no media type/)
  for (const url of ['ftp://secret', 'https://user:secret@host/']) t.notMatch(problemOf({ url }), /secret/)
  t.match(read({ delay: 'soon', channels: [phone] }).problems, [
    'notify.delay: "soon" must be a length of time (like 10s or 5m)',
  ])
  t.match(read({ channels: [phone, phone] }).problems, [/"phone" is there already/])
})
