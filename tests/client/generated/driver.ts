// Drives a portal by openapi-fetch, with the types that openapi-typescript made; prints the id of
// the video.
import createClient from "openapi-fetch";
import type { paths } from "./schema.ts";

declare const process: { argv: string[] };

const [portalUrl, token, receiverUrl] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const portal = createClient<paths>({ baseUrl: portalUrl, headers });

function expect(isMet: boolean, answer: unknown): asserts isMet {
  if (!isMet) throw new Error(JSON.stringify(answer));
}

const webhook = await portal.POST("/api/webhooks", {
  body: { url: receiverUrl, events: ["video.created", "video.deleted"] },
});
expect(webhook.data !== undefined, webhook.error);

const upload = await portal.POST("/api/videos/presign", {
  body: { fileName: "harbour.mp4", contentType: "video/mp4" },
});
expect(upload.data !== undefined, upload.error);
const sent = await fetch(upload.data.uploadUrl, {
  method: "PUT",
  body: "raw bytes",
  headers: { "Content-Type": "video/mp4" },
});
expect(sent.ok, sent.status);

const video = await portal.POST("/api/videos", {
  body: {
    title: "Harbour",
    description: "",
    categoryIds: [1],
    tags: "",
    fileName: "harbour.mp4",
    key: upload.data.key,
  },
});
expect(video.data !== undefined, video.error);
const id = video.data.id;
// @ts-expect-error: the types know that it is a text
const _number: number = video.data.id;

const listed = await portal.GET("/api/videos", { params: { query: { id: [id], limit: 1 } } });
expect(listed.data?.videos[0]?.title === "Harbour", listed);

const edited = await portal.PATCH("/api/videos/{id}", {
  params: { path: { id } },
  body: { title: "Harbour at dawn" },
});
expect(edited.data?.title === "Harbour at dawn", edited);

const deleted = await portal.DELETE("/api/videos/{id}", { params: { path: { id } } });
expect(deleted.data !== undefined, deleted.error);
console.log(deleted.data.id);
