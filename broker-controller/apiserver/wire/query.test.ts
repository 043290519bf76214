import { test } from 'tap'
import { isSwitchedOn } from './query.ts'

test('a parameter is true unless it is missing, 0 or false', async (t) => {
  const read = (text: string) => isSwitchedOn(new URLSearchParams(text), 'watch')
  for (const text of ['watch', 'watch=', 'watch=1', 'watch=true', 'watch=True', 'watch=00', 'watch=no'])
    t.ok(read(text), text)
  for (const text of ['', 'other=1', 'watch=0', 'watch=false', 'watch=False', 'watch=FALSE']) t.notOk(read(text), text)
})
