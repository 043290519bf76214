import { readFileSync } from 'node:fs'
import { test } from 'tap'

type Locked = {
  readonly optionalDependencies?: { readonly [name: string]: string }
  readonly resolved?: string
  readonly link?: true
}

const lock: { readonly packages: { readonly [path: string]: Locked } } = JSON.parse(
  readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
)

test('the lock file is good on every kind of machine', async (t) => {
  const locked = new Set(Object.keys(lock.packages).map((path) => path.replace(/.*node_modules\//, '')))
  const builds = Object.entries(lock.packages)
    .filter(([path]) => /node_modules\/(@biomejs\/biome|esbuild)$/.test(path))
    .flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies))
  t.ok(builds.length > 20)
  t.same(
    builds.filter((name) => !locked.has(name)),
    [],
    'npm ci refuses a lock file that lacks a build for another machine',
  )
})

test('the lock file names no place to download from', async (t) => {
  const named = Object.entries(lock.packages).filter(([, { resolved, link }]) => resolved !== undefined && !link)
  t.same(
    named.map(([path]) => path),
    [],
  )
})
