/** kubectl reads files with sigs.k8s.io/yaml, as the API server and the kubelet do: its reading of a text is the right one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { yamlCases, yamlRefusals } from '../daemon/testing/yaml-table.ts'
import { readYaml } from '../daemon/yaml/yaml-reader.ts'
import { skipWithout } from './support/missing-parts.ts'

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0
const skip = skipWithout('kubectl', hasKubectl)

test('kubectl reads each value of the table as Bramble does', { skip }, async (t) => {
  const entries = yamlCases.flatMap(({ text }, at) => [`c${at}:`, ...indented(text)])
  const source = [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata: {name: x}',
    'data:',
    ...indented(entries.join('\n')),
  ].join('\n')
  const { status, stdout, stderr } = kubectlReads(source)
  t.equal(status, 0, stderr)
  const { data } = JSON.parse(stdout)
  for (const [at, { text, content }] of yamlCases.entries()) t.same(data[`c${at}`], content, text)
  t.same(readYaml(source, { allowDuplicates: true }), JSON.parse(stdout), 'the whole text')
})

test('kubectl refuses what Bramble refuses, with the same words', { skip }, async (t) => {
  for (const [text, message] of yamlRefusals) {
    const { status, stderr } = kubectlReads(
      ['apiVersion: v1', 'kind: ConfigMap', 'data:', ...indented(text)].join('\n'),
    )
    t.not(status, 0, text)
    t.ok(stderr.includes(message), `${text}: ${stderr}`)
  }
})

/** `--local`: without an API server. */
function kubectlReads(source: string) {
  const folder = mkdtempSync(join(tmpdir(), 'bramble-yaml-'))
  try {
    const path = join(folder, 'object.yaml')
    writeFileSync(path, `${source}\n`)
    return spawnSync('kubectl', ['patch', '--local', '-f', path, '-p', '{}', '-o', 'json'], {
      encoding: 'utf8',
      timeout: 60_000,
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function indented(text: string): readonly string[] {
  return text.split('\n').map((line) => `  ${line}`)
}
