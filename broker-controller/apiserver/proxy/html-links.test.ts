import { Readable } from 'node:stream'
import { test } from 'tap'
import { rewrittenLinks } from './html-links.ts'
import { rewrittenLocation } from './proxy-headers.ts'

const rewrite = (url: string) => rewrittenLocation(url, '/api/v1/x/proxy', ['10.0.0.2:80'])

async function through(...pieces: readonly string[]): Promise<string> {
  const page = rewrittenLinks(Readable.from(pieces.map((one) => Buffer.from(one))), rewrite)
  return Buffer.concat(await Readable.from(page).toArray()).toString()
}

test('links from the root lead through the proxy, whatever their quotes', async (t) => {
  t.equal(await through('<a href="/rewriteme">'), '<a href="/api/v1/x/proxy/rewriteme">')
  t.equal(
    await through("<A class=x HREF = '/a?b=1&amp;c#d' >go</A>"),
    "<A class=x HREF = '/api/v1/x/proxy/a?b=1&amp;c#d' >go</A>",
  )
  t.equal(await through('<img alt=/x src=/y.png>'), '<img alt=/x src=/api/v1/x/proxy/y.png>')
  t.equal(await through('<script async src=/y.js></script>'), '<script async src=/api/v1/x/proxy/y.js></script>')
  t.equal(await through('<form/action="/go">'), '<form/action="/api/v1/x/proxy/go">')
  t.equal(
    await through('<input src="/1"formaction="/2">'),
    '<input src="/api/v1/x/proxy/1"formaction="/api/v1/x/proxy/2">',
  )
  t.equal(await through('<link href="http://10.0.0.2:80/a.css">'), '<link href="/api/v1/x/proxy/a.css">')
})

test('everything else stays as it is', async (t) => {
  for (const page of [
    '<a href="next">',
    '<a href="https://example.org/x">',
    '<a href="//example.org/x">',
    '<a href="#top"><a href=""><a href><a href=>',
    '<a title="/x"><p href="/x"><my-a href="/x">',
    '<a title="href=/x" data-href="/x">',
    '<!-- <a href="/x"> --><!DOCTYPE html><![CDATA[<x]]>',
    '<script>document.write("<a href=\'/x\'>")</script>',
    '<textarea><a href="/x"></TEXTAREA>',
    'a < b, 1 <2, </a>, <?php echo "/x" ?>, <',
    '<a href="/x',
    '<!-- never closed <a href="/x">',
    'Grüße, 日本 <b>ü</b>',
  ]) {
    t.equal(await through(page), page)
  }
})

test('a comment ends where browsers end it', async (t) => {
  const link = '<a href="/x">'
  const changed = '<a href="/api/v1/x/proxy/x">'
  for (const comment of ['<!-->', '<!--->', '<!-- > -->', '<!---- -->']) {
    t.equal(await through(comment + link), comment + changed)
  }
  t.equal(await through(`<style>a > b</style>${link}`), `<style>a > b</style>${changed}`)
})

test('it does not matter where a page is cut into pieces', async (t) => {
  const page =
    '<!-- <a href="/0"> --><p>1<script>"</scrip"</script ><a class="a>b" href="/1">ü</a><img src=/2><a href=\'/3\'>'
  const whole = await through(page)
  t.match(whole, '<a class="a>b" href="/api/v1/x/proxy/1">')
  t.match(whole, '<!-- <a href="/0"> -->')
  for (let at = 1; at < page.length; at++) t.equal(await through(page.slice(0, at), page.slice(at)), whole)
  t.equal(await through(...page), whole)
})

test('what is not a tag is passed on, not kept without bound', async (t) => {
  const page = rewrittenLinks(endless(), rewrite)
  let received = 0
  for await (const piece of page) {
    received += piece.length
    if (received > 300_000) break
  }
  t.ok(received > 300_000)
})

test('what a page takes grows with its length alone', async (t) => {
  // Each comment was once searched to the end of the page: this one would take minutes.
  const page = `${'<!--><title></title>'.repeat(200_000)}X<a href="/x">`
  t.match((await through(page)).slice(-40), 'X<a href="/api/v1/x/proxy/x">')
})

async function* endless() {
  yield Buffer.from('<a href="')
  for (;;) yield Buffer.alloc(10_000, 'x')
}
