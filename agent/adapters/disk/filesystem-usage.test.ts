import { test } from 'tap'
import { filesystemUsage } from './filesystem-usage.ts'

test('a filesystem that hangs holds one thread, however many ask', async (t) => {
  let asked = 0
  const filesystemAt = filesystemUsage(() => {
    asked++
    return new Promise<never>(() => undefined)
  })
  t.same(await Promise.all(['/slow', '/slow', '/slow'].map(filesystemAt)), [undefined, undefined, undefined])
  t.equal(asked, 1)
})

test('the usage of a filesystem is read; one that is not there has none', async (t) => {
  const filesystemAt = filesystemUsage()
  t.match(await filesystemAt('/'), { capacityBytes: Number, usedBytes: Number, inodes: Number })
  t.equal(await filesystemAt('/no/such/folder'), undefined)
})
