import { test } from 'tap'
import type { Container } from '../pod.ts'
import { problemText } from '../problem.ts'
import { envProblems } from './env-validation.ts'

test('a variable takes its value from one place that exists', async (t) => {
  const problems = (container: Partial<Container>) => envProblems('c', { name: 'main', ...container }).map(problemText)
  const from = (valueFrom: NonNullable<Container['env']>[number]['valueFrom']) =>
    problems({ env: [{ name: 'A', valueFrom: valueFrom ?? {} }] })
  t.same(from({ configMapKeyRef: { name: 'cm', key: 'k' } }), [])
  t.same(from({ fieldRef: { fieldPath: "metadata.labels['app']" } }), [])
  t.same(from({ resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } }), [])
  t.match(from({}), [/^c\.env\[0\]\.valueFrom: Invalid value: "": must specify one of/])
  t.match(from({ fieldRef: { fieldPath: 'status.phase' } }), [
    /^c\.env\[0\]\.valueFrom\.fieldRef\.fieldPath: Unsupported/,
  ])
  t.same(from({ fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }), [])
  t.same(from({ fieldRef: { apiVersion: 'v2', fieldPath: 'metadata.name' } }), [
    'c.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2',
  ])
  t.match(from({ fieldRef: { fieldPath: 'metadata.labels' } }), [/fieldPath: Unsupported value/])
  t.match(from({ secretKeyRef: { name: '', key: '../k' } }), [
    /secretKeyRef\.name: Required/,
    /secretKeyRef\.key: Invalid/,
  ])
  t.match(problems({ env: [{ name: 'A', value: '1', valueFrom: { configMapKeyRef: { name: 'a', key: 'b' } } }] }), [
    /valueFrom: Invalid value: "": may not be specified when `value` is not empty/,
  ])
  t.match(problems({ envFrom: [{ prefix: 'a=b' }] }), [
    /^c\.envFrom\[0\]\.prefix: Invalid/,
    /^c\.envFrom\[0\]: Invalid/,
  ])
})
