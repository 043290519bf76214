import { test } from 'tap'
import { claimSpaceMessage } from './claim-space.ts'

const gib = 2 ** 30

test('the volumes that fill the disk are named, the largest first', async (t) => {
  const claims = ['a', 'b', 'c', 'd', 'small'].map((name, index) => ({
    claim: `default/${name}`,
    usedBytes: name === 'small' ? gib : (index + 2) * gib,
  }))
  t.match(
    claimSpaceMessage(claims, 32 * gib),
    /^Volumes of claims fill the disk of this machine \(32 GiB\): default\/d \(5\.0 GiB\), default\/c .*, default\/b .* and 1 more\. No eviction frees/,
  )
})

test('volumes that are not why the disk is full are not named', async (t) => {
  t.equal(claimSpaceMessage([], 32 * gib), undefined)
  t.equal(claimSpaceMessage([{ claim: 'default/a', usedBytes: gib }], 32 * gib), undefined)
  t.equal(claimSpaceMessage([{ claim: 'default/a', usedBytes: 0 }], 0), undefined)
})
