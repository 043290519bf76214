import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { nodeVersion, releaseIn, version } from './version.ts'

test('the programs print the version of the package', async (t) => {
  const read = (path: string) => JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')).version
  for (const path of ['package.json', 'agent/package.json', 'broker-controller/package.json']) {
    t.equal(read(path), version, path)
  }
})

test('our release is read out of the version of a node', async (t) => {
  t.equal(releaseIn(nodeVersion), version)
  t.equal(releaseIn('v1.32.4'), undefined)
  t.equal(releaseIn('v1.32.4-bramble.'), undefined)
})
